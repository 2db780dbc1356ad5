// Rows of a table as samples, read as a TableSchema says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "moxing/formats/csv_table.h"
#include "moxing/tabular/table_schema.h"
#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/array.h"

namespace mox {

struct TableDatasetOptions {
  // Whether elements are {features, target} or {features}. The target is int32[], the place of its class, or
  // float32[], (value - mean) / deviation.
  bool with_target = true;
  UnseenValue unseen = UnseenValue::kError;
};

// A sample a row: features float32[schema.features()]. Its name (Batch::names, a column of prediction files)
// is the cell of the schema's id column, or "FILE:LINE". Columns that the schema does not know are passed
// over. How many values were taken as missing for UnseenValue::kMissing is a warning.
//
// Everything is read and checked here. Throws NotFound for a column that is not there, DataError (path, line,
// column, how to go on) for a cell that the schema cannot read: text where training had numbers, a category
// that it did not have, a target that is missing, a class that it did not have.
Dataset table_dataset(const TableSchema& schema, const data::CsvTable& table, std::span<const int64_t> rows,
                      const TableDatasetOptions& options = {},
                      SourceLocation where = SourceLocation::current());
Dataset table_dataset(const TableSchema& schema, const data::CsvTable& table,
                      const TableDatasetOptions& options = {},
                      SourceLocation where = SourceLocation::current());

// The number of rows of each class, by label. DataError as above.
std::vector<int64_t> rows_of_classes(const TableSchema& schema, const data::CsvTable& table,
                                     std::span<const int64_t> rows);

// The same features of all rows at once, float32 [rows, features]: for mox::Predictor.
Array table_features(const TableSchema& schema, const data::CsvTable& table,
                     UnseenValue unseen = UnseenValue::kError);

}  // namespace mox
