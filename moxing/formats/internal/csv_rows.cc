#include "moxing/formats/internal/csv_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "moxing/formats/internal/csv_blocks.h"
#include "moxing/formats/internal/csv_text.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/resource_limits.h"

namespace mox::data::internal {
namespace {

// Takes one cell after the other off a text, which may be cut anywhere: what is taken of a row that is not
// whole (is_cut) counts for nothing, and is to be taken again where more of it is there.
class CsvCells {
 public:
  // The cells go to `out`, which has room for the text and may be its own memory, as a cell never grows.
  // `line`: of the text's begin. `is_last`: nothing follows the text.
  CsvCells(std::string_view text, bool is_last, char* out, char delimiter, const std::string& name,
           int64_t line)
      : text_(text.data()),
        at_(text.data()),
        end_(text.data() + text.size()),
        is_last_(is_last),
        out_(out),
        to_(out),
        delimiter_(delimiter),
        name_(name),
        line_(line) {}

  struct Place {
    const char* at;
    char* to;
    int64_t line;
  };
  Place place() const { return {at_, to_, line_}; }
  void return_to(const Place& place) {
    at_ = place.at;
    to_ = place.to;
    line_ = place.line;
  }

  bool at_end() const { return at_ == end_; }
  // Whether what follows the text may change what was taken last.
  bool is_cut() const { return at_ == end_ && !is_last_; }
  int64_t line() const { return line_; }                // that the next cell begins in
  size_t taken_text() const { return at_ - text_; }     // bytes
  size_t bytes_of_cells() const { return to_ - out_; }  // of all until now
  std::string_view cells() const { return {out_, bytes_of_cells()}; }

  void pass(size_t characters) { at_ += characters; }
  // Passes over a line of so many characters.
  void pass_line(size_t characters) {
    at_ += characters;
    take_line_end();
  }

  // Passes over lines of nothing but spaces, as far as they are whole.
  void pass_empty_lines() {
    for (;;) {
      const char* next = at_;
      while (next != end_ && (*next == ' ' || *next == '\t') && *next != delimiter_) ++next;
      if (next == end_ && is_last_) at_ = end_;
      if (next == end_ || (*next != '\n' && *next != '\r')) return;
      if (*next == '\r' && next + 1 == end_ && !is_last_) return;  // half of a line's end, maybe
      at_ = next;
      take_line_end();
    }
  }

  // Sets *last if the line ends behind it.
  void take(bool* last) {
    pass_spaces();
    if (at_ != end_ && *at_ == '"')
      take_quoted();
    else
      take_plain();
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

  void take_plain() {
    const char* const begin = at_;
    while (at_ != end_ && *at_ != delimiter_ && !is_line_end()) ++at_;
    const std::string_view cell = without_spaces({begin, static_cast<size_t>(at_ - begin)});
    std::memmove(to_, cell.data(), cell.size());
    to_ += cell.size();
  }

  void take_quoted() {
    const int64_t began = line_;
    for (++at_;; ++at_) {
      if (is_cut()) return;
      if (at_ == end_)
        throw DataError(
            fmt::format("'{}', line {}: the quote (\") that begins a cell here does not end", name_, began));
      if (*at_ == '\n' || (*at_ == '\r' && (at_ + 1 == end_ || at_[1] != '\n'))) ++line_;
      if (*at_ == '"') {
        if (at_ + 1 == end_ || at_[1] != '"') break;
        ++at_;
      }
      *to_++ = *at_;
    }
    ++at_;
    pass_spaces();
    if (at_ != end_ && *at_ != delimiter_ && !is_line_end())
      throw DataError(
          fmt::format("'{}', line {}: text follows the quote (\") that ends a cell; quotes within a cell are "
                      "doubled (\"\")",
                      name_, line_));
  }

  const char* const text_;
  const char* at_;
  const char* const end_;
  const bool is_last_;
  char* const out_;
  char* to_;  // where the next cell goes
  const char delimiter_;
  const std::string& name_;
  int64_t line_;
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

// Room for more numbers of a text that has been looked at up to `share` of it: for as many as it will have if
// it goes on as it began. (A vector that grows takes three times its size.)
template <typename Numbers>
void make_room(Numbers& numbers, size_t more, double share) {
  const size_t needed = numbers.size() + more;
  if (needed <= numbers.capacity()) return;
  constexpr double kSlack = 1.05;
  const bool is_part = share > 0 && share < 1;  // of an empty text it is 0
  numbers.reserve(is_part ? static_cast<size_t>(static_cast<double>(needed) / share * kSlack) : needed);
}

// The room of cells that there are not: delimiters in quotes had been counted.
template <typename Numbers>
void give_back(Numbers& numbers) {
  if (numbers.size() < numbers.capacity() / 2) numbers.shrink_to_fit();
}

// Takes rows off the whole text or one part after the other. `End`: what holds the size of the text.
template <typename End>
class CsvRowsReader {
 public:
  CsvRowsReader(char delimiter, const std::string& name, uint64_t bytes)
      : delimiter_(delimiter), name_(name), bytes_(bytes) {}

  // In the text's own memory.
  void take_all(std::string text) {
    text.resize(parse(text, true, text.data()).bytes_of_cells());
    cells_ = std::move(text);
  }

  // The whole rows of the next part, and what is behind the last one if nothing follows (`is_last`). Returns
  // how many bytes they are: the others are to come again, with more behind them. The first part has at
  // least kBeginBytes, or is all.
  size_t take(std::string_view text, bool is_last) {
    block_.resize(std::max(block_.size(), text.size()));
    const CsvCells cells = parse(text, is_last, block_.data());
    make_room(cells_, cells.bytes_of_cells(), share_);
    cells_ += cells.cells();
    return cells.taken_text();
  }
  // A byte order mark, a line that names the delimiter, and the end of that line.
  static constexpr size_t kBeginBytes = 3 + 5 + 2;

  // Bytes of memory that it uses.
  size_t bytes() const {
    return block_.size() + cells_.size() + ends_.size() * sizeof(End) + rows_.lines.size() * sizeof(uint32_t);
  }

  CsvRows finish() {
    give_back(ends_);
    give_back(rows_.lines);
    rows_.texts = TextList(std::move(cells_), std::move(ends_));
    return std::move(rows_);
  }

 private:
  CsvCells parse(std::string_view text, bool is_last, char* out);
  void take_begin(CsvCells& cells, std::string_view text) const;
  void take_names(CsvCells& cells, bool is_last);
  void take_rows(CsvCells& cells);
  // Returns how many cells the row has; none of them is taken if it is cut.
  size_t take_row(CsvCells& cells);

  const char delimiter_;
  const std::string& name_;
  const uint64_t bytes_;
  uint64_t passed_ = 0;  // bytes of the parts before
  double share_ = 0;     // of the text, with this part
  bool is_begun_ = false;
  int64_t line_ = 1;
  TextList names_;
  CsvRows rows_;
  std::string cells_, block_;
  std::vector<End> ends_;
};

template <typename End>
CsvCells CsvRowsReader<End>::parse(std::string_view text, bool is_last, char* out) {
  share_ = static_cast<double>(passed_ + text.size()) / static_cast<double>(std::max<uint64_t>(bytes_, 1));
  const auto line_ends = std::ranges::count(text, '\n') + std::ranges::count(text, '\r');
  make_room(ends_, std::ranges::count(text, delimiter_) + line_ends + 1, share_);
  make_room(rows_.lines, line_ends, share_);
  CsvCells cells(text, is_last, out, delimiter_, name_, line_);
  if (!is_begun_) take_begin(cells, text);
  is_begun_ = true;
  if (rows_.columns == 0) take_names(cells, is_last);
  if (rows_.columns > 0) take_rows(cells);
  line_ = cells.line();
  passed_ += cells.taken_text();
  return cells;
}

template <typename End>
void CsvRowsReader<End>::take_begin(CsvCells& cells, std::string_view text) const {
  const std::string_view unmarked = without_mark(text, name_);
  cells.pass(text.size() - unmarked.size());
  const std::string_view first_line = unmarked.substr(0, unmarked.find_first_of("\r\n"));
  if (first_line.size() != 5 || !first_line.starts_with("sep=")) return;  // what spreadsheets are told
  if (first_line[4] != delimiter_)
    throw InvalidArgument(
        fmt::format("'{}' says in its first line that its delimiter is '{}', not '{}': say so (delimiter)",
                    name_, first_line[4], delimiter_));
  cells.pass_line(first_line.size());
}

template <typename End>
size_t CsvRowsReader<End>::take_row(CsvCells& cells) {
  const CsvCells::Place begin = cells.place();
  size_t count = 0;
  for (bool last = false; !last; ++count) {
    cells.take(&last);
    ends_.push_back(static_cast<End>(cells_.size() + cells.bytes_of_cells()));
  }
  if (!cells.is_cut()) return count;
  cells.return_to(begin);
  ends_.resize(ends_.size() - count);
  return 0;
}

template <typename End>
void CsvRowsReader<End>::take_names(CsvCells& cells, bool is_last) {
  cells.pass_empty_lines();
  if (cells.at_end() && is_last)
    throw DataError(fmt::format("'{}' is empty; its first line should name the columns", name_));
  if (cells.at_end()) return;
  rows_.columns = take_row(cells);
  if (rows_.columns == 0) return;
  names_ = TextList(std::string(cells.cells()), std::vector<End>(ends_));
  rows_.sorted_columns = sorted_names({names_, 0, rows_.columns}, name_);
}

template <typename End>
void CsvRowsReader<End>::take_rows(CsvCells& cells) {
  for (cells.pass_empty_lines(); !cells.at_end(); cells.pass_empty_lines()) {
    const int64_t line = cells.line();
    require_countable(line, name_);
    const size_t count = take_row(cells);
    if (count == 0) return;
    if (count != rows_.columns)
      throw DataError(fmt::format("'{}', line {}: {} cells, where the first line names {} columns{}", name_,
                                  line, count, rows_.columns,
                                  rows_.columns == 1 ? delimiter_advice(names_[0], delimiter_) : ""));
    rows_.lines.push_back(static_cast<uint32_t>(line));
  }
}

void require_memory(size_t bytes, const std::string& name) {
  if (const size_t most = available_memory(); bytes > most)
    throw IoError(
        fmt::format("the cells of '{}' have more than the {} bytes of memory that this process may have: it "
                    "is not read further",
                    name, most));
}

// As of the whole text: what is no UTF-8 anywhere is refused before cells that do not fit together, after
// which the others are no longer taken.
template <typename End>
CsvRows rows_in_blocks(ByteStream& stream, size_t block_bytes, char delimiter, const std::string& name,
                       uint32_t* checksum) {
  CsvRowsReader<End> reader(delimiter, name, stream.left());
  std::exception_ptr refusal;
  size_t held = 0;    // of the text's bytes, those that came before
  int64_t lines = 0;  // line ends before the text
  bool is_begun = false;
  read_in_blocks(stream, block_bytes, [&](std::string_view text, bool is_last) {
    require_memory(reader.bytes() + text.size(), name);
    *checksum = crc32(std::as_bytes(std::span(text.substr(held))), *checksum);
    held = text.size();
    if (!is_begun && text.size() < reader.kBeginBytes && !is_last) return std::optional<size_t>(0);
    if (!is_begun) without_mark(text, name);
    is_begun = true;
    size_t taken = require_utf8(text, name, is_last, lines);
    if (!refusal) try {
        taken = reader.take(text, is_last);
      } catch (const Error&) {
        refusal = std::current_exception();
      }
    // Half of a line's end stays.
    if (refusal && !is_last && text.substr(0, taken).ends_with('\r')) --taken;
    lines += line_ends(text.substr(0, taken));
    held -= taken;
    return std::optional<size_t>(taken);
  });
  if (refusal) std::rethrow_exception(refusal);
  return reader.finish();
}

}  // namespace

std::string delimiter_advice(std::string_view only, char delimiter) {
  for (const auto& [other, words] : {std::pair{';', "';'"}, {'\t', "a tab"}, {',', "','"}})
    if (other != delimiter && only.find(other) != std::string_view::npos)
      return fmt::format("; the delimiter seems to be {}: say so (delimiter)", words);
  return "";
}

CsvRows csv_rows(std::string text, char delimiter, const std::string& name) {
  const auto take = [&]<typename End>(CsvRowsReader<End> reader) {
    reader.take_all(std::move(text));
    return reader.finish();
  };
  if (text.size() > UINT32_MAX) return take(CsvRowsReader<uint64_t>(delimiter, name, text.size()));
  return take(CsvRowsReader<uint32_t>(delimiter, name, text.size()));
}

CsvRows csv_rows(ByteStream& text, size_t block_bytes, char delimiter, const std::string& name,
                 uint32_t* checksum) {
  const auto read = text.left() > UINT32_MAX ? rows_in_blocks<uint64_t> : rows_in_blocks<uint32_t>;
  return read(text, block_bytes, delimiter, name, checksum);
}

}  // namespace mox::data::internal
