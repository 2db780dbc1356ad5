#include "moxing/formats/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "moxing/formats/internal/csv_text.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/nearest_name.h"

namespace mox::data {
namespace {

// Takes one cell after the other off a text. Doubled quotes are made single where they stand: a cell never
// grows.
class CsvCells {
 public:
  CsvCells(char* begin, char* end, char delimiter, const std::string& name)
      : at_(begin), end_(end), delimiter_(delimiter), name_(name) {}

  bool at_end() const { return at_ == end_; }
  int64_t line() const { return line_; }  // that the next cell begins in

  // Passes over lines of nothing but spaces.
  void pass_empty_lines() {
    for (;;) {
      char* next = at_;
      while (next != end_ && (*next == ' ' || *next == '\t') && *next != delimiter_) ++next;
      if (next == end_) at_ = end_;
      if (next == end_ || (*next != '\n' && *next != '\r')) return;
      at_ = next;
      take_line_end();
    }
  }

  // Sets *last if the line ends behind it.
  std::string_view take(bool* last) {
    pass_spaces();
    const std::string_view cell = at_ != end_ && *at_ == '"' ? take_quoted() : take_plain();
    *last = at_ == end_ || *at_ != delimiter_;
    if (!*last)
      ++at_;
    else
      take_line_end();
    return cell;
  }

 private:
  bool is_line_end() const { return *at_ == '\n' || *at_ == '\r'; }
  void pass_spaces() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t') && *at_ != delimiter_) ++at_;
  }
  void take_line_end() {
    if (at_ == end_) return;
    if (*at_ == '\r' && at_ + 1 != end_ && at_[1] == '\n') ++at_;
    ++at_;
    ++line_;
  }

  std::string_view take_plain() {
    const char* const begin = at_;
    while (at_ != end_ && *at_ != delimiter_ && !is_line_end()) ++at_;
    return internal::without_spaces({begin, static_cast<size_t>(at_ - begin)});
  }

  std::string_view take_quoted() {
    const int64_t began = line_;
    char* const begin = ++at_;
    char* to = begin;
    for (;; ++at_) {
      if (at_ == end_)
        throw DataError(
            fmt::format("'{}', line {}: the quote (\") that begins a cell here does not end", name_, began));
      if (*at_ == '\n' || (*at_ == '\r' && (at_ + 1 == end_ || at_[1] != '\n'))) ++line_;
      if (*at_ == '"') {
        if (at_ + 1 == end_ || at_[1] != '"') break;
        ++at_;
      }
      *to++ = *at_;
    }
    ++at_;
    pass_spaces();
    if (at_ != end_ && *at_ != delimiter_ && !is_line_end())
      throw DataError(
          fmt::format("'{}', line {}: text follows the quote (\") that ends a cell; quotes within a cell are "
                      "doubled (\"\")",
                      name_, line_));
    return {begin, static_cast<size_t>(to - begin)};
  }

  char* at_;
  char* const end_;
  const char delimiter_;
  const std::string& name_;
  int64_t line_ = 1;
};

void add_column_name(std::string_view cell, const std::string& path, std::vector<std::string>* columns) {
  const size_t place = columns->size() + 1;
  if (cell.empty())
    throw DataError(
        fmt::format("'{}': column {} has no name in the first line (row numbers that pandas has written? "
                    "to_csv(..., index=False) leaves them out)",
                    path, place));
  const auto before = std::find(columns->begin(), columns->end(), cell);
  if (before != columns->end())
    throw DataError(fmt::format("'{}': two columns, {} and {}, are called '{}'", path,
                                before - columns->begin() + 1, place, cell));
  columns->emplace_back(cell);
}

// What may be the matter with a file whose lines do not fit together.
std::string delimiter_advice(const std::vector<std::string>& columns, char delimiter) {
  if (columns.size() != 1) return "";
  for (const auto& [other, words] : {std::pair{';', "';'"}, {'\t', "a tab"}, {',', "','"}})
    if (other != delimiter && columns[0].find(other) != std::string::npos)
      return fmt::format("; the delimiter seems to be {}: say so (delimiter)", words);
  return "";
}

// A first line with a number in it is hardly one of names.
std::string header_advice(const std::vector<std::string>& columns) {
  const auto is_number = [](const std::string& cell) {
    double number = 0;
    const char* end = cell.data() + cell.size();
    const auto parsed = std::from_chars(cell.data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end;
  };
  if (std::none_of(columns.begin(), columns.end(), is_number)) return "";
  return "; its first line must name the columns, and seems to be the first row: put a line of names before "
         "it";
}

}  // namespace

size_t CsvTable::column(std::string_view name) const {
  const auto found = std::find(columns().begin(), columns().end(), name);
  if (found != columns().end()) return found - columns().begin();
  const std::string nearest = mox::internal::nearest_name(name, columns());
  throw NotFound(fmt::format("'{}' has no column '{}'{}; it has {}{}", path(), name,
                             nearest.empty() ? "" : fmt::format(": is '{}' meant?", nearest),
                             mox::internal::first_names(columns()),
                             delimiter_advice(columns(), content_->delimiter) + header_advice(columns())));
}

bool CsvTable::has_column(std::string_view name) const {
  return std::find(columns().begin(), columns().end(), name) != columns().end();
}

std::string CsvTable::place(int64_t row, size_t column) const {
  return fmt::format("'{}', line {}, column '{}'", path(), line(row), columns()[column]);
}

CsvTable parse_csv_table(std::string text, char delimiter, const std::string& name) {
  if (delimiter == '"' || delimiter == '\n' || delimiter == '\r' || delimiter == ' ')
    throw InvalidArgument("csv: the delimiter must not be a quote, a space or the end of a line");
  auto content = std::make_shared<CsvTable::Content>();
  content->path = name;
  content->delimiter = delimiter;
  content->text = std::move(text);
  content->checksum = crc32(std::as_bytes(std::span(content->text)));
  const std::string_view unmarked = internal::without_mark(content->text, name);
  internal::require_utf8(unmarked, name);
  const size_t mark = content->text.size() - unmarked.size();
  char* const begin = content->text.data();
  CsvCells cells(begin + mark, begin + content->text.size(), delimiter, name);

  const std::string_view first_line = unmarked.substr(0, unmarked.find_first_of("\r\n"));
  if (first_line.size() == 5 && first_line.starts_with("sep=")) {  // what spreadsheets are told
    if (first_line[4] != delimiter)
      throw InvalidArgument(
          fmt::format("'{}' says in its first line that its delimiter is '{}', not '{}': say so (delimiter)",
                      name, first_line[4], delimiter));
    for (bool last = false; !last;) cells.take(&last);
  }
  cells.pass_empty_lines();
  if (cells.at_end())
    throw DataError(fmt::format("'{}' is empty; its first line should name the columns", name));
  for (bool last = false; !last;) add_column_name(cells.take(&last), name, &content->columns);

  const size_t columns = content->columns.size();
  for (cells.pass_empty_lines(); !cells.at_end(); cells.pass_empty_lines()) {
    const int64_t line = cells.line();
    size_t count = 0;
    for (bool last = false; !last; ++count) content->cells.push_back(cells.take(&last));
    if (count != columns)
      throw DataError(fmt::format("'{}', line {}: {} cells, where the first line names {} columns{}", name,
                                  line, count, columns, delimiter_advice(content->columns, delimiter)));
    content->lines.push_back(line);
  }
  return CsvTable(std::move(content));
}

CsvTable read_csv_table(const std::string& path, char delimiter) {
  return parse_csv_table(internal::csv_content(path), delimiter, path);
}

std::vector<std::string> missing_words() { return {"NA", "N/A", "#N/A", "<NA>", "NaN", "null", "?"}; }

std::optional<double> parse_number(std::string_view text, char decimal) {
  std::string memory;
  const auto number = internal::with_decimal_point(text, decimal, &memory);
  if (!number) return std::nullopt;
  std::string_view cell = *number;
  if (cell.starts_with('+')) {
    cell.remove_prefix(1);
    if (cell.starts_with('-') || cell.starts_with('+')) return std::nullopt;
  }
  double value = 0;
  const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (cell.empty() || rest != cell.data() + cell.size() || error != std::errc() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace mox::data
