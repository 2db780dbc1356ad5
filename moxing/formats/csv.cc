#include "moxing/formats/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "moxing/file/file.h"
#include "moxing/formats/internal/csv_numbers.h"
#include "moxing/formats/internal/csv_text.h"
#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/input_file.h"

namespace mox::data {
namespace {

using internal::CsvNumbers;

constexpr size_t kBlockBytes = size_t{32} << 20;

// Reads a local file in blocks of `block_bytes`, or of as many as are not done with yet. `take` gets those
// and the next block, and whether nothing follows; it says how many bytes it is done with, or nothing to end.
void read_in_blocks(const InputFile& file, size_t block_bytes,
                    FunctionRef<std::optional<size_t>(std::string_view text, bool is_last)> take) {
  const uint64_t bytes = file.bytes();
  std::string block;
  size_t held = 0;  // of the block's bytes, those that are read and not done with
  for (uint64_t at = 0;;) {
    const auto more = static_cast<size_t>(std::min<uint64_t>(std::max(block_bytes, held), bytes - at));
    block.resize(held + more);
    file.read_at(at, std::as_writable_bytes(std::span(block).subspan(held)));
    at += more;
    const std::optional<size_t> taken = take(block, at == bytes);
    if (!taken || at == bytes) return;
    block.erase(0, *taken);
    held = block.size();
  }
}

// The first line that is not empty.
std::string first_line(const std::string& path) {
  std::string found;
  const auto look = [&](std::string_view text, bool is_last) -> std::optional<size_t> {
    std::string_view content = internal::without_mark(text, path), line;
    while (!content.empty() && internal::without_spaces(line).empty()) line = internal::take_line(&content);
    if (content.empty() && !is_last) return 0;  // the line may go on
    found = line;
    return std::nullopt;
  };
  constexpr size_t kLineBytes = size_t{64} << 10;
  if (file::is_remote(path))
    look(internal::csv_content(path), true);
  else
    read_in_blocks(InputFile(path), kLineBytes, look);
  return found;
}

}  // namespace

Array parse_csv(std::string_view content, const CsvOptions& options, const std::string& name) {
  CsvNumbers numbers(options, name);
  numbers.take(content, true);
  return numbers.finish();
}

int64_t csv_column(const std::string& path, std::string_view wanted, const CsvOptions& options) {
  const std::string text = first_line(path);
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
  if (file::is_remote(path)) return parse_csv(internal::csv_content(path), options, path);
  const InputFile file(path);
  CsvNumbers numbers(options, path);
  read_in_blocks(file, kBlockBytes,
                 [&](std::string_view text, bool is_last) { return numbers.take(text, is_last); });
  return numbers.finish();
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
  Array table = read_csv(path, options);
  if (!label_column) return Dataset::from_arrays({table}, where);
  require_column(table, *label_column, "label", path);
  const int64_t at = *label_column;
  Array labels(DType::kInt32, Shape{table.shape()[0]});
  int64_t row = 0;
  Array numbers = without_column(std::move(table), at, [&](float label) {
    // Whole numbers beyond 2^24 are not all float32.
    if (label != std::floor(label) || std::fabs(label) > static_cast<float>(1 << 24))
      throw DataError(
          fmt::format("'{}', sample {}, column {}: the label {} is no whole number up to 2^24; "
                      "csv_regression takes real values",
                      path, row + 1, at + 1, label));
    labels.values<int32_t>()[row++] = static_cast<int32_t>(label);
  });
  return Dataset::from_arrays({std::move(numbers), std::move(labels)}, where);
}

Dataset csv_regression(const std::string& path, const CsvOptions& options, int64_t target_column,
                       SourceLocation where) {
  Array table = read_csv(path, options);
  require_column(table, target_column, "target", path);
  Array targets(DType::kFloat32, Shape{table.shape()[0]});
  auto to = targets.values<float>().begin();
  Array numbers = without_column(std::move(table), target_column, [&](float target) { *to++ = target; });
  return Dataset::from_arrays({std::move(numbers), std::move(targets)}, where);
}

}  // namespace mox::data
