#include "moxing/formats/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::data {
namespace {

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

Array parse_csv(std::string_view content, const CsvOptions& options, const std::string& name) {
  std::vector<float> values;
  int64_t rows = 0, columns = 0, line_number = 0;
  bool header = options.header;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line = content.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (without_spaces(line).empty()) continue;
    if (header) {
      header = false;
      continue;
    }
    int64_t column = 0;
    for (bool more = true; more;) {
      const size_t stop = std::min(line.find(options.delimiter), line.size());
      const std::string_view cell = without_spaces(line.substr(0, stop));
      more = stop < line.size();
      if (more) line.remove_prefix(stop + 1);
      ++column;
      float value = 0;
      const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      if (error != std::errc() || rest != cell.data() + cell.size() || !std::isfinite(value))
        throw DataError(fmt::format("'{}', line {}, column {}: '{}' is no number that float32 can hold", name,
                                    line_number, column, cell.substr(0, 40)));
      values.push_back(value);
    }
    if (rows++ == 0) columns = column;
    if (column != columns)
      throw DataError(fmt::format("'{}', line {}: {} numbers, where the lines before have {}", name,
                                  line_number, column, columns));
  }
  return Array::from<float>(Shape{rows, columns}, std::span<const float>(values));
}

Array read_csv(const std::string& path, const CsvOptions& options) {
  return parse_csv(read_file(path), options, path);
}

Dataset csv(const std::string& path, const CsvOptions& options, std::optional<int64_t> label_column,
            SourceLocation where) {
  const Array table = read_csv(path, options);
  if (!label_column) return Dataset::from_arrays({table}, where);
  const int64_t rows = table.shape()[0], columns = table.shape()[1], at = *label_column;
  if (at < 0 || at >= columns)
    throw DataError(fmt::format("'{}' has {} columns: there is no label column {} (they count from 0)", path,
                                columns, at));
  Array numbers(DType::kFloat32, Shape{rows, columns - 1}), labels(DType::kInt32, Shape{rows});
  const auto from = table.values<float>();
  auto to = numbers.values<float>().begin();
  for (int64_t row = 0; row < rows; ++row) {
    const auto line = from.subspan(static_cast<size_t>(row * columns), static_cast<size_t>(columns));
    const float label = line[static_cast<size_t>(at)];
    // Whole numbers beyond 2^24 are not all float32.
    if (label != std::floor(label) || std::fabs(label) > static_cast<float>(1 << 24))
      throw DataError(fmt::format("'{}', sample {}, column {}: the label {} is no whole number up to 2^24",
                                  path, row + 1, at + 1, label));
    labels.values<int32_t>()[static_cast<size_t>(row)] = static_cast<int32_t>(label);
    to = std::copy(line.begin(), line.begin() + at, to);
    to = std::copy(line.begin() + at + 1, line.end(), to);
  }
  return Dataset::from_arrays({numbers, labels}, where);
}

}  // namespace mox::data
