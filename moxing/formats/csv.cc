#include "moxing/formats/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "moxing/formats/internal/csv_text.h"
#include "runtime/base/error.h"

namespace mox::data {
namespace {

using internal::without_mark;
using internal::without_spaces;

// The next line, which is taken off `content`. A quoted cell does not pass the end of a line: none of a
// number does.
std::string_view take_line(std::string_view* content) {
  const size_t end = std::min(content->find_first_of("\r\n"), content->size());
  const std::string_view line = content->substr(0, end);
  content->remove_prefix(end);
  if (content->starts_with("\r\n"))
    content->remove_prefix(2);
  else if (!content->empty())
    content->remove_prefix(1);
  return line;
}

// The next cell, which is taken off `line` with the delimiter behind it; *more says whether another one
// follows. Quotes around it are left out, and doubled ones within are one.
std::string take_cell(std::string_view* line, char delimiter, bool* more) {
  size_t stop = 0;
  bool quoted = false;
  for (; stop < line->size() && (quoted || (*line)[stop] != delimiter); ++stop)
    if ((*line)[stop] == '"') quoted = !quoted;
  // A quote that does not end is no quote: the cell ends at the next delimiter.
  if (quoted) stop = std::min(line->find(delimiter), line->size());
  const std::string_view raw =
      delimiter == '\t' ? line->substr(0, stop) : without_spaces(line->substr(0, stop));
  *more = stop < line->size();
  line->remove_prefix(stop + (*more ? 1 : 0));
  std::string_view cell = without_spaces(raw);
  if (cell.size() < 2 || !cell.starts_with('"') || !cell.ends_with('"')) return std::string(cell);
  cell = cell.substr(1, cell.size() - 2);
  std::string result;
  for (size_t i = 0; i < cell.size(); ++i) {
    result += cell[i];
    if (cell[i] == '"' && i + 1 < cell.size() && cell[i + 1] == '"') ++i;
  }
  return std::string(without_spaces(result));
}

bool is_missing(std::string_view cell) {
  std::string lower(cell);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  });
  for (const char* word : {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "?"})
    if (lower == word) return true;
  return false;
}

// The number that `cell` spells, if it is one that float32 can hold.
std::optional<float> number_of(std::string cell, char decimal) {
  if (decimal != '.') {
    if (cell.find('.') != std::string::npos) return std::nullopt;
    std::replace(cell.begin(), cell.end(), decimal, '.');
  }
  const char* begin = cell.data();
  const char* const end = begin + cell.size();
  if (begin != end && *begin == '+') ++begin;
  if (begin != cell.data() && (begin == end || *begin == '-' || *begin == '+')) return std::nullopt;
  float value = 0;
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (rest != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Too small or too large: the nearest double tells; beyond doubles, the mantissa and the exponent do.
    double wide = 0;
    const auto [wide_rest, wide_error] = std::from_chars(begin, end, wide);
    if (wide_error == std::errc() && wide_rest == end) {
      if (std::fabs(wide) > 1) return std::nullopt;
      return static_cast<float>(wide);
    }
    const std::string_view text(begin, end - begin);
    const size_t exponent = text.find_first_of("eE");
    const std::string_view mantissa = text.substr(0, exponent);
    const bool small = exponent != std::string_view::npos
                           ? text.substr(exponent + 1).starts_with('-')
                           : mantissa.starts_with("0.") || mantissa.starts_with("-0.") ||
                                 mantissa.starts_with('.') || mantissa.starts_with("-.");
    if (!small) return std::nullopt;
    return text.starts_with('-') ? -0.0f : 0.0f;
  }
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

void check_options(const CsvOptions& options) {
  if (options.decimal != '.' && options.decimal != ',')
    throw InvalidArgument(
        fmt::format("csv: the decimal mark must be '.' or ',', it is '{}'", options.decimal));
  if (options.decimal == options.delimiter)
    throw InvalidArgument(
        fmt::format("csv: '{}' cannot be both the delimiter and the decimal mark", options.decimal));
}

[[noreturn]] void refuse_cell(const std::string& cell, const CsvOptions& options, const std::string& name,
                              int64_t line, int64_t column) {
  std::string advice;
  const bool has_digits = cell.find_first_of("0123456789") != std::string::npos;
  if (is_missing(cell))
    advice =
        ": the cell is empty or a value that is missing; `missing` (CsvOptions) says what stands for one";
  else if (options.delimiter != ';' && cell.find(';') != std::string::npos)
    advice = ": the delimiter seems to be ';' (CsvOptions::delimiter)";
  else if (options.delimiter != '\t' && cell.find('\t') != std::string::npos)
    advice = ": the delimiter seems to be a tab (CsvOptions::delimiter)";
  else if (options.decimal == '.' && has_digits && cell.find(',') != std::string::npos)
    advice = ": the decimal mark seems to be ',' (CsvOptions::decimal)";
  else if (line == 1 && !options.header && !has_digits)
    advice = ": the first line seems to name the columns (CsvOptions::header)";
  throw DataError(fmt::format("'{}', line {}, column {}: '{}' is no number that float32 can hold{}", name,
                              line, column, cell.substr(0, 40), advice));
}

}  // namespace

Array parse_csv(std::string_view content, const CsvOptions& options, const std::string& name) {
  check_options(options);
  content = without_mark(content, name);
  std::vector<float> values;
  int64_t rows = 0, columns = 0, line_number = 0;
  bool header = options.header;
  while (!content.empty()) {
    std::string_view line = take_line(&content);
    ++line_number;
    if (without_spaces(line).empty()) continue;
    if (header) {
      header = false;
      continue;
    }
    int64_t column = 0;
    for (bool more = true; more;) {
      const std::string cell = take_cell(&line, options.delimiter, &more);
      ++column;
      std::optional<float> value = number_of(cell, options.decimal);
      if (!value && options.missing && is_missing(cell)) value = options.missing;
      if (!value) refuse_cell(cell, options, name, line_number, column);
      values.push_back(*value);
    }
    if (rows++ == 0) columns = column;
    if (column != columns)
      throw DataError(fmt::format("'{}', line {}: {} numbers, where the lines before have {}", name,
                                  line_number, column, columns));
  }
  return Array::from<float>(Shape{rows, columns}, std::span<const float>(values));
}

int64_t csv_column(const std::string& path, std::string_view wanted, const CsvOptions& options) {
  const std::string text = internal::csv_content(path);
  std::string_view content = without_mark(text, path), line;
  while (!content.empty() && without_spaces(line).empty()) line = take_line(&content);
  std::string there;
  int64_t found = -1, column = 0;
  for (bool more = true; more; ++column) {
    const std::string cell = take_cell(&line, options.delimiter, &more);
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
  return parse_csv(internal::csv_content(path), options, path);
}

namespace {

void require_column(const Array& table, int64_t column, const char* what, const std::string& path) {
  if (column < 0 || column >= table.shape()[1])
    throw DataError(fmt::format("'{}' has {} columns: there is no {} column {} (they count from 0)", path,
                                table.shape()[1], what, column));
}

}  // namespace

Dataset csv(const std::string& path, const CsvOptions& options, std::optional<int64_t> label_column,
            SourceLocation where) {
  const Array table = read_csv(path, options);
  if (!label_column) return Dataset::from_arrays({table}, where);
  require_column(table, *label_column, "label", path);
  const int64_t rows = table.shape()[0], columns = table.shape()[1], at = *label_column;
  Array numbers(DType::kFloat32, Shape{rows, columns - 1}), labels(DType::kInt32, Shape{rows});
  const auto from = table.values<float>();
  auto to = numbers.values<float>().begin();
  for (int64_t row = 0; row < rows; ++row) {
    const auto line = from.subspan(row * columns, columns);
    const float label = line[at];
    // Whole numbers beyond 2^24 are not all float32.
    if (label != std::floor(label) || std::fabs(label) > static_cast<float>(1 << 24))
      throw DataError(
          fmt::format("'{}', sample {}, column {}: the label {} is no whole number up to 2^24; "
                      "csv_regression takes real values",
                      path, row + 1, at + 1, label));
    labels.values<int32_t>()[row] = static_cast<int32_t>(label);
    to = std::copy(line.begin(), line.begin() + at, to);
    to = std::copy(line.begin() + at + 1, line.end(), to);
  }
  return Dataset::from_arrays({numbers, labels}, where);
}

Dataset csv_regression(const std::string& path, const CsvOptions& options, int64_t target_column,
                       SourceLocation where) {
  const Array table = read_csv(path, options);
  require_column(table, target_column, "target", path);
  const auto rows = static_cast<size_t>(table.shape()[0]), columns = static_cast<size_t>(table.shape()[1]);
  const ptrdiff_t at = target_column;
  Array numbers(DType::kFloat32, Shape{table.shape()[0], table.shape()[1] - 1});
  Array targets(DType::kFloat32, Shape{table.shape()[0]});
  const auto from = table.values<float>();
  auto to = numbers.values<float>().begin();
  for (size_t row = 0; row < rows; ++row) {
    const auto line = from.subspan(row * columns, columns);
    targets.values<float>()[row] = line[at];
    to = std::copy(line.begin(), line.begin() + at, to);
    to = std::copy(line.begin() + at + 1, line.end(), to);
  }
  return Dataset::from_arrays({numbers, targets}, where);
}

}  // namespace mox::data
