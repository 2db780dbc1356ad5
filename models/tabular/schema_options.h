// The options data.* of a run that goes on with the schema of a checkpoint: what they say of columns must be
// what the model was trained with.
#pragma once

#include <moxing/moxing.h>

namespace tabular {

// Throws ConfigError for an option that is given (others are passed over, whatever their default says) and
// contradicts `schema`: another target or task, a column that would be read otherwise.
void require_options_of(const mox::TableSchema& schema);

// Columns of a table to train on that `schema` has no part for, and that data.ignored does not name: a
// warning, or ConfigError where data.ignored is given.
void require_known_columns(const mox::TableSchema& schema, const mox::data::CsvTable& table);

}  // namespace tabular
