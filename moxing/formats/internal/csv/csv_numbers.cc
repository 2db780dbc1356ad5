#include "moxing/formats/internal/csv/csv_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "moxing/formats/csv_table.h"
#include "moxing/formats/internal/csv/csv_slices.h"
#include "moxing/formats/internal/csv/csv_text.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox::data::internal {
namespace {

bool is_line_end(char letter) { return letter == '\n' || letter == '\r'; }

bool is_missing(std::string_view cell) {
  static const std::vector<std::string> words = missing_words();
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  };
  return cell.empty() || std::any_of(words.begin(), words.end(), [&](const std::string& word) {
           return std::ranges::equal(word, cell, {}, lower, lower);
         });
}

// The number that `cell` spells, if it is one that float32 can hold.
std::optional<float> number_of(std::string_view text_of_cell, char decimal) {
  std::string memory;
  const auto number = with_decimal_point(text_of_cell, decimal, &memory);
  if (!number) return std::nullopt;
  const std::string_view cell = *number;
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

}  // namespace

std::string_view take_line(std::string_view* content) {
  const size_t end = std::find_if(content->begin(), content->end(), is_line_end) - content->begin();
  const std::string_view line = content->substr(0, end);
  content->remove_prefix(end);
  if (content->starts_with("\r\n"))
    content->remove_prefix(2);
  else if (!content->empty())
    content->remove_prefix(1);
  return line;
}

std::string_view take_cell(std::string_view* line, char delimiter, bool* more, std::string* memory) {
  size_t stop = std::min(line->find(delimiter), line->size());
  if (std::memchr(line->data(), '"', stop)) {
    const size_t first = stop;
    bool quoted = false;
    for (stop = 0; stop < line->size() && (quoted || (*line)[stop] != delimiter); ++stop)
      if ((*line)[stop] == '"') quoted = !quoted;
    // A quote that does not end is no quote: the cell ends at the next delimiter.
    if (quoted) stop = first;
  }
  const std::string_view raw =
      delimiter == '\t' ? line->substr(0, stop) : without_spaces(line->substr(0, stop));
  *more = stop < line->size();
  line->remove_prefix(stop + (*more ? 1 : 0));
  std::string_view cell = without_spaces(raw);
  if (cell.size() < 2 || !cell.starts_with('"') || !cell.ends_with('"')) return cell;
  cell = cell.substr(1, cell.size() - 2);
  memory->clear();
  for (size_t i = 0; i < cell.size(); ++i) {
    *memory += cell[i];
    if (cell[i] == '"' && i + 1 < cell.size() && cell[i + 1] == '"') ++i;
  }
  return without_spaces(*memory);
}

// What a slice gives, up to the first line that is refused. Lines are counted from 1, in the slice.
struct CsvNumbers::Slice {
  std::vector<float> values;
  int64_t lines = 0, rows = 0, columns = 0, first_row = 0;  // columns and line of the first row
  struct BadCell {
    std::string text;
    int64_t line, column;
  };
  std::optional<BadCell> bad_cell;
  std::optional<std::pair<int64_t, int64_t>> bad_row;  // its line and columns
  std::optional<int64_t> long_line;
};

void refuse_long_line(const std::string& name, int64_t line, size_t longest) {
  throw DataError(
      fmt::format("'{}', line {}: no line end in {} bytes, which no line of a table has; lines end with \\n, "
                  "\\r\\n or \\r: is this a CSV file?",
                  name, line, longest));
}

CsvNumbers::CsvNumbers(const CsvOptions& options, std::string name, size_t longest_line,
                       std::optional<int64_t> whole_column)
    : options_(options),
      name_(std::move(name)),
      longest_line_(longest_line),
      whole_column_(whole_column),
      header_(options.header) {
  if (options.decimal != '.' && options.decimal != ',')
    throw InvalidArgument(
        fmt::format("csv: the decimal mark must be '.' or ',', it is '{}'", options.decimal));
  if (options.decimal == options.delimiter)
    throw InvalidArgument(
        fmt::format("csv: '{}' cannot be both the delimiter and the decimal mark", options.decimal));
}

// A \r at the end of what is there may be half of a line's end.
size_t CsvNumbers::whole_lines(std::string_view text, bool is_last) {
  if (is_last) return text.size();
  if (text.ends_with('\r')) text.remove_suffix(1);
  const size_t end = text.find_last_of("\r\n");
  return end == std::string_view::npos ? 0 : end + 1;
}

size_t CsvNumbers::take(std::string_view text, bool is_last) {
  const size_t taken = whole_lines(text, is_last);
  std::string_view lines = text.substr(0, taken);
  if (taken > 0 && is_first_) lines = without_mark(lines, name_);
  if (taken > 0) is_first_ = false;
  while (header_ && !lines.empty()) {
    ++lines_;
    const std::string_view line = take_line(&lines);
    if (line.size() > longest_line_) refuse_long_line(name_, lines_, longest_line_);
    header_ = without_spaces(line).empty();
    if (!header_) warn_of_numbers(line);
  }
  std::vector<std::string_view> texts;
  while (!lines.empty()) {
    std::string_view rest = lines.substr(std::min(CsvSlices{}.bytes, lines.size()));
    take_line(&rest);  // to the end of this line, or of a line's end that is cut in two
    texts.push_back(lines.substr(0, lines.size() - rest.size()));
    lines = rest;
  }
  std::vector<Slice> slices(texts.size());
  take_on_all_cores(slices.size(), {}, [&](size_t i) { slices[i] = parse(texts[i]); });
  for (Slice& slice : slices) add(std::move(slice));
  const std::string_view rest = text.substr(taken);
  if (rest.size() - (rest.ends_with('\r') ? 1 : 0) > longest_line_)
    refuse_long_line(name_, lines_ + 1, longest_line_);
  return taken;
}

CsvNumbers::Slice CsvNumbers::parse(std::string_view text) const {
  Slice slice;
  std::string memory;
  while (!text.empty()) {
    std::string_view line = take_line(&text);
    ++slice.lines;
    if (line.size() > longest_line_) {
      slice.long_line = slice.lines;
      return slice;
    }
    if (without_spaces(line).empty()) continue;
    int64_t column = 0;
    for (bool more = true; more;) {
      const std::string_view cell = take_cell(&line, options_.delimiter, &more, &memory);
      std::optional<float> value = number_of(cell, options_.decimal);
      if (!value && options_.missing && column != whole_column_ && is_missing(cell)) value = options_.missing;
      ++column;
      if (!value) {
        slice.bad_cell = {std::string(cell), slice.lines, column};
        return slice;
      }
      slice.values.push_back(*value);
    }
    if (slice.rows++ == 0) {
      slice.columns = column;
      slice.first_row = slice.lines;
    }
    if (column != slice.columns) {
      slice.bad_row = {slice.lines, column};
      return slice;
    }
  }
  return slice;
}

void CsvNumbers::add(Slice slice) {
  if (slice.rows > 0) {
    if (rows_ == 0) columns_ = slice.columns;
    if (slice.columns != columns_) refuse_line(lines_ + slice.first_row, slice.columns);
  }
  if (slice.bad_cell)
    refuse_cell(slice.bad_cell->text, lines_ + slice.bad_cell->line, slice.bad_cell->column);
  if (slice.bad_row) refuse_line(lines_ + slice.bad_row->first, slice.bad_row->second);
  if (slice.long_line) refuse_long_line(name_, lines_ + *slice.long_line, longest_line_);
  lines_ += slice.lines;
  rows_ += slice.rows;
  slice.values.shrink_to_fit();
  parts_.push_back(std::move(slice.values));
}

void CsvNumbers::refuse_line(int64_t line, int64_t columns) const {
  throw DataError(fmt::format("'{}', line {}: {} numbers, where the lines before have {}", name_, line,
                              columns, columns_));
}

std::string CsvNumbers::option(std::string_view field) const {
  return fmt::format("{}{}", options_.option_prefix.empty() ? "CsvOptions::" : options_.option_prefix, field);
}

// A sample that is passed over as a header is missed by nobody. Columns may be called by their numbers.
void CsvNumbers::warn_of_numbers(std::string_view header) const {
  std::string memory;
  const std::string_view whole = header;
  std::optional<float> before;
  bool counts = true;
  for (bool more = true; more;) {
    const auto value = number_of(take_cell(&header, options_.delimiter, &more, &memory), options_.decimal);
    if (!value) return;
    counts = counts && (before ? *value == *before + 1 : *value == 0 || *value == 1);
    before = value;
  }
  if (counts) return;
  constexpr size_t kShown = 40;
  log_warning(fmt::format(
      "'{}': the first line is passed over, since it is to name the columns ({}), and has numbers alone: '{}{}'. If "
      "it is a sample, the file has no header",
      name_, option("header"), whole.substr(0, kShown), whole.size() > kShown ? "..." : ""));
}

void CsvNumbers::refuse_cell(const std::string& cell, int64_t line, int64_t column) const {
  std::string advice;
  const bool has_digits = cell.find_first_of("0123456789") != std::string::npos;
  if (is_missing(cell) && options_.missing)
    advice = fmt::format(
        ": it is the label or the target, for which {} does not stand: fill it in, or leave the "
        "line out",
        option("missing"));
  else if (is_missing(cell))
    advice = fmt::format(": the cell is empty or a value that is missing; {} says what stands for one",
                         option("missing"));
  else if (options_.delimiter != ';' && cell.find(';') != std::string::npos)
    advice = fmt::format(": the delimiter seems to be ';' ({})", option("delimiter"));
  else if (options_.delimiter != '\t' && cell.find('\t') != std::string::npos)
    advice = fmt::format(": the delimiter seems to be a tab ({})", option("delimiter"));
  else if (options_.decimal == '.' && has_digits && cell.find(',') != std::string::npos)
    advice = fmt::format(": the decimal mark seems to be ',' ({})", option("decimal"));
  else if (line == 1 && !options_.header && !has_digits)
    advice = fmt::format(": the first line seems to name the columns ({})", option("header"));
  throw DataError(fmt::format("'{}', line {}, column {}: '{}' is no number that float32 can hold{}", name_,
                              line, column, cell.substr(0, 40), advice));
}

// From behind, so that what is copied is given back to the system at once: the whole is there once.
Array CsvNumbers::finish() {
  Array result = Array::uninitialized({DType::kFloat32, Shape{rows_, columns_}});
  float* end = result.values<float>().data() + result.elements();
  for (; !parts_.empty(); parts_.pop_back()) {
    const std::vector<float>& part = parts_.back();
    end = std::copy_backward(part.begin(), part.end(), end);
  }
  return result;
}

}  // namespace mox::data::internal
