// Classes of which an evaluation has no row: a warning.
#pragma once

#include <moxing/moxing.h>

#include <cstdint>
#include <span>

namespace tabular {

// Of a classification; by rank 0. What is measured says nothing of such a class, and looks better or worse
// than it is.
void warn_of_absent_classes(const mox::TableSchema& schema, const mox::data::CsvTable& evaluation,
                            std::span<const int64_t> rows);

}  // namespace tabular
