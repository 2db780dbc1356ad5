#include "moxing/formats/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>

#include "moxing/formats/internal/csv_text.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/nearest_name.h"

namespace mox::data {
namespace {

// Takes one cell after the other off a text, and moves them together at its begin: a cell never grows.
class CsvCells {
 public:
  // `text` without its first bytes, `mark`.
  CsvCells(std::string* text, size_t mark, char delimiter, const std::string& name)
      : begin_(text->data()),
        to_(begin_),
        at_(begin_ + mark),
        end_(begin_ + text->size()),
        delimiter_(delimiter),
        name_(name) {}

  bool at_end() const { return at_ == end_; }
  int64_t line() const { return line_; }               // that the next cell begins in
  size_t taken_bytes() const { return to_ - begin_; }  // of all cells until now

  // Passes over a line of so many characters.
  void pass_line(size_t characters) {
    at_ += characters;
    take_line_end();
  }

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
  void take(bool* last) {
    pass_spaces();
    const std::string_view cell = at_ != end_ && *at_ == '"' ? take_quoted() : take_plain();
    std::memmove(to_, cell.data(), cell.size());
    to_ += cell.size();
    *last = at_ == end_ || *at_ != delimiter_;
    if (!*last)
      ++at_;
    else
      take_line_end();
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

  char* const begin_;
  char* to_;  // where the next cell goes
  char* at_;
  char* const end_;
  const char delimiter_;
  const std::string& name_;
  int64_t line_ = 1;
};

// Numbers of lines and of columns take four bytes.
void require_countable(int64_t number, const std::string& name) {
  if (number > int64_t{UINT32_MAX})
    throw DataError(fmt::format("'{}' has more than {} lines or columns: split it", name, UINT32_MAX));
}

// The places of the columns in the order of their names. Throws DataError for the first name that is empty or
// another column's.
std::vector<uint32_t> sorted_names(const TextRange& columns, const std::string& path) {
  require_countable(std::ssize(columns), path);
  std::vector<uint32_t> sorted(columns.size());
  std::iota(sorted.begin(), sorted.end(), uint32_t{0});
  std::ranges::sort(
      sorted, [&](uint32_t a, uint32_t b) { return std::pair(columns[a], a) < std::pair(columns[b], b); });
  size_t wrong = columns.size(), before = 0;
  for (size_t i = 1; i < sorted.size(); ++i)
    if (columns[sorted[i]] == columns[sorted[i - 1]] && sorted[i] < wrong) {
      wrong = sorted[i];
      before = sorted[i - 1];
    }
  if (columns[sorted[0]].empty() && sorted[0] < wrong)
    throw DataError(
        fmt::format("'{}': column {} has no name in the first line (row numbers that pandas has written? "
                    "to_csv(..., index=False) leaves them out)",
                    path, sorted[0] + 1));
  if (wrong < columns.size())
    throw DataError(fmt::format("'{}': two columns, {} and {}, are called '{}'", path, before + 1, wrong + 1,
                                columns[wrong]));
  return sorted;
}

// What may be the matter with a file whose lines do not fit together, of one column called `only`.
std::string delimiter_advice(std::string_view only, char delimiter) {
  for (const auto& [other, words] : {std::pair{';', "';'"}, {'\t', "a tab"}, {',', "','"}})
    if (other != delimiter && only.find(other) != std::string_view::npos)
      return fmt::format("; the delimiter seems to be {}: say so (delimiter)", words);
  return "";
}

// A first line with a number in it is hardly one of names.
std::string header_advice(const TextRange& columns) {
  const auto is_number = [](std::string_view cell) {
    double number = 0;
    const char* end = cell.data() + cell.size();
    const auto parsed = std::from_chars(cell.data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end;
  };
  if (std::none_of(columns.begin(), columns.end(), is_number)) return "";
  return "; its first line must name the columns, and seems to be the first row: put a line of names before "
         "it";
}

// The room of cells that there are not: delimiters in quotes had been counted.
template <typename Number>
void give_back(std::vector<Number>& numbers) {
  if (numbers.size() < numbers.capacity() / 2) numbers.shrink_to_fit();
}

}  // namespace

struct CsvTable::Content {
  std::string path;
  uint32_t checksum = 0;
  char delimiter = ',';
  size_t columns = 0;
  TextList texts;  // the names of the columns, then the cells row by row
  std::vector<uint32_t> lines;
  std::vector<uint32_t> sorted_columns;

  // Takes all cells off `text`, and the text itself; `End`: what holds its size.
  template <typename End>
  void read(CsvCells& cells, std::string& text);
};

template <typename End>
void CsvTable::Content::read(CsvCells& cells, std::string& text) {
  // A vector that grows takes three times its size.
  const auto line_ends = std::ranges::count(text, '\n') + std::ranges::count(text, '\r');
  std::vector<End> ends;
  ends.reserve(std::ranges::count(text, delimiter) + line_ends + 1);
  lines.reserve(line_ends);
  const auto take = [&] {
    bool last = false;
    cells.take(&last);
    ends.push_back(static_cast<End>(cells.taken_bytes()));
    return !last;
  };
  while (take()) continue;
  columns = ends.size();
  const TextList names(text.substr(0, cells.taken_bytes()), std::vector<End>(ends));
  sorted_columns = sorted_names({names, 0, columns}, path);
  for (cells.pass_empty_lines(); !cells.at_end(); cells.pass_empty_lines()) {
    const int64_t line = cells.line();
    require_countable(line, path);
    size_t count = 1;
    while (take()) ++count;
    if (count != columns)
      throw DataError(fmt::format("'{}', line {}: {} cells, where the first line names {} columns{}", path,
                                  line, count, columns,
                                  columns == 1 ? delimiter_advice(names[0], delimiter) : ""));
    lines.push_back(static_cast<uint32_t>(line));
  }
  text.resize(cells.taken_bytes());
  give_back(ends);
  give_back(lines);
  texts = TextList(std::move(text), std::move(ends));
}

int64_t CsvTable::rows() const { return std::ssize(content_->lines); }
TextRange CsvTable::columns() const& { return {content_->texts, 0, content_->columns}; }
const std::string& CsvTable::path() const { return content_->path; }
uint32_t CsvTable::checksum() const { return content_->checksum; }

std::string_view CsvTable::cell(int64_t row, size_t column) const& {
  return content_->texts[(static_cast<size_t>(row) + 1) * content_->columns + column];
}

int64_t CsvTable::line(int64_t row) const { return content_->lines[row]; }

size_t CsvTable::column(std::string_view name) const {
  const TextRange names = columns();
  const auto& sorted = content_->sorted_columns;
  const auto found =
      std::ranges::lower_bound(sorted, name, {}, [&](uint32_t column) { return names[column]; });
  if (found != sorted.end() && names[*found] == name) return *found;
  const std::vector<std::string> known = names.strings();
  const std::string nearest = mox::internal::nearest_name(name, known);
  throw NotFound(fmt::format(
      "'{}' has no column '{}'{}; it has {}{}", path(), name,
      nearest.empty() ? "" : fmt::format(": is '{}' meant?", nearest), mox::internal::first_names(known),
      (names.size() == 1 ? delimiter_advice(names[0], content_->delimiter) : "") + header_advice(names)));
}

bool CsvTable::has_column(std::string_view name) const {
  return std::ranges::binary_search(content_->sorted_columns, name, {},
                                    [&](uint32_t column) { return columns()[column]; });
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
  content->checksum = crc32(std::as_bytes(std::span(text)));
  const std::string_view unmarked = internal::without_mark(text, name);
  internal::require_utf8(unmarked, name);
  CsvCells cells(&text, text.size() - unmarked.size(), delimiter, name);

  const std::string_view first_line = unmarked.substr(0, unmarked.find_first_of("\r\n"));
  if (first_line.size() == 5 && first_line.starts_with("sep=")) {  // what spreadsheets are told
    if (first_line[4] != delimiter)
      throw InvalidArgument(
          fmt::format("'{}' says in its first line that its delimiter is '{}', not '{}': say so (delimiter)",
                      name, first_line[4], delimiter));
    cells.pass_line(first_line.size());
  }
  cells.pass_empty_lines();
  if (cells.at_end())
    throw DataError(fmt::format("'{}' is empty; its first line should name the columns", name));
  if (text.size() > UINT32_MAX)
    content->read<uint64_t>(cells, text);
  else
    content->read<uint32_t>(cells, text);
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
