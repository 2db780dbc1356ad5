#include "moxing/formats/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "moxing/formats/internal/csv/csv_blocks.h"
#include "moxing/formats/internal/csv/csv_numbers.h"
#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"

namespace mox::data {

Array parse_csv(std::string_view content, const CsvOptions& options, const std::string& name) {
  internal::CsvNumbers numbers(options, name, internal::kLongestLine);
  numbers.take(content, true);
  return numbers.finish();
}

int64_t csv_column(const std::string& path, std::string_view wanted, const CsvOptions& options) {
  const std::string text = internal::first_csv_line(path);
  std::string_view line = text;
  std::string memory;
  std::string there;
  int64_t found = -1, column = 0;
  for (bool more = true; more; ++column) {
    const std::string cell(internal::take_cell(&line, options.delimiter, &more, &memory));
    there += (there.empty() ? "'" : ", '") + cell + "'";
    if (cell != wanted) continue;
    if (found >= 0)
      throw DataError(
          fmt::format("'{}': two columns, {} and {}, are called '{}'", path, found, column, wanted));
    found = column;
  }
  if (found < 0)
    throw NotFound(fmt::format("'{}' has no column '{}' in its first line; it has {}", path, wanted, there));
  return found;
}

Array read_csv(const std::string& path, const CsvOptions& options) {
  return internal::read_csv_in_blocks(path, options);
}

namespace {

void require_column(const Array& table, int64_t column, const char* what, const std::string& path) {
  if (column < 0 || column >= table.shape()[1])
    throw DataError(fmt::format("'{}' has {} columns: there is no {} column {} (they count from 0)", path,
                                table.shape()[1], what, column));
}

// The table without a column, whose numbers `take` gets row by row; in the table's own memory.
Array without_column(Array table, int64_t column, FunctionRef<void(float)> take) {
  const int64_t rows = table.shape()[0], columns = table.shape()[1];
  float* from = table.values<float>().data();
  float* to = from;
  for (int64_t row = 0; row < rows; ++row, from += columns) {
    take(from[column]);
    to = std::copy(from, from + column, to);
    to = std::copy(from + column + 1, from + columns, to);
  }
  const auto owner = std::make_shared<Array>(std::move(table));
  return Array({DType::kFloat32, Shape{rows, columns - 1}}, std::shared_ptr<std::byte>(owner, owner->data()));
}

}  // namespace

Dataset csv(const std::string& path, const CsvOptions& options, std::optional<int64_t> label_column,
            SourceLocation where) {
  Array table = internal::read_csv_in_blocks(path, options, {}, label_column);
  if (!label_column) return Dataset::from_arrays({table}, where);
  require_column(table, *label_column, "label", path);
  const int64_t at = *label_column;
  Array labels(DType::kInt32, Shape{table.shape()[0]});
  int64_t row = 0;
  Array numbers = without_column(std::move(table), at, [&](float label) {
    // Beyond 2^24 not all whole numbers are float32, and what is 2^24 may have been another one.
    if (label != std::floor(label) || std::fabs(label) >= static_cast<float>(1 << 24))
      throw DataError(
          fmt::format("'{}', sample {}, column {}: the label {} is no whole number below 2^24; "
                      "csv_regression takes real values",
                      path, row + 1, at + 1, label));
    labels.values<int32_t>()[row++] = static_cast<int32_t>(label);
  });
  return Dataset::from_arrays({std::move(numbers), std::move(labels)}, where);
}

Dataset csv_regression(const std::string& path, const CsvOptions& options, int64_t target_column,
                       SourceLocation where) {
  Array table = internal::read_csv_in_blocks(path, options, {}, target_column);
  require_column(table, target_column, "target", path);
  Array targets(DType::kFloat32, Shape{table.shape()[0]});
  auto to = targets.values<float>().begin();
  Array numbers = without_column(std::move(table), target_column, [&](float target) { *to++ = target; });
  return Dataset::from_arrays({std::move(numbers), std::move(targets)}, where);
}

}  // namespace mox::data
