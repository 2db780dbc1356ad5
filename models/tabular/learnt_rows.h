// Rows that are evaluated on and were learnt from: a warning.
#pragma once

#include <moxing/moxing.h>

#include <string>

namespace tabular {

// The training part in words, for TableSchema::training_part: all rows of a table.
std::string all_rows_of(const mox::data::CsvTable& table);

// Two files: says how many rows of the one to evaluate on are in the one to train on, if half or more are.
// Files that are equal are found by mox::run.
void warn_of_learnt_rows(const mox::TableSchema& schema, const mox::data::CsvTable& training,
                         const mox::data::CsvTable& evaluation);

// A file to evaluate on of which the trained model has learnt a part.
void warn_of_learnt_file(const mox::TableSchema& schema, const mox::data::CsvTable& evaluation);

}  // namespace tabular
