#include "moxing/formats/internal/csv/csv_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>

#include "moxing/formats/internal/csv/csv_blocks.h"
#include "moxing/formats/internal/csv/csv_cells.h"
#include "moxing/formats/internal/csv/csv_text.h"
#include "runtime/base/error.h"
#include "runtime/base/resource_limits.h"

namespace mox::data::internal {
namespace {

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
  ask_for_huge_pages(numbers.data() + numbers.size(),
                     (numbers.capacity() - numbers.size()) * sizeof(numbers[0]));
}

// The room of cells that there are not: delimiters in quotes had been counted.
template <typename Numbers>
void give_back(Numbers& numbers) {
  if (numbers.size() < numbers.capacity() / 2) numbers.shrink_to_fit();
}

// Rows of a slice of the text, up to the first that is refused. Lines and bytes are counted from its begin.
template <typename End>
struct CsvSlice {
  std::string_view text;
  bool is_last;  // nothing follows that may change its last row
  char* out;     // where its cells go
  // Where the cells end and in which lines the rows begin, the refused one among them. The first slice of
  // some adds to those of all text before, whose cells end at `begin`.
  std::vector<End> ends = {};
  std::vector<uint32_t> lines = {};
  size_t begin = 0;
  std::string_view cells = {};
  size_t taken_text = 0;
  int64_t line_ends = 0;
  std::optional<CsvRefusal> refusal = {};
};

struct CsvCounts {
  size_t cells = 0, rows = 0;  // that there can be at most
};

CsvCounts most_in(std::string_view text, char delimiter) {
  const size_t rows = std::ranges::count(text, '\n') + std::ranges::count(text, '\r') + 1;
  return {std::ranges::count(text, delimiter) + rows, rows};
}

// Takes a row and adds where its cells end, counted from `begin`. Returns how many it has; none of them is
// taken if it is cut.
template <typename End>
size_t take_row(CsvCells& cells, size_t begin, std::vector<End>& ends) {
  const CsvCells::Place place = cells.place();
  size_t count = 0;
  for (bool last = false; !last; ++count) {
    cells.take(&last);
    ends.push_back(static_cast<End>(begin + cells.bytes_of_cells()));
  }
  if (!cells.is_cut()) return count;
  cells.return_to(place);
  ends.resize(ends.size() - count);
  return 0;
}

// Takes rows off the whole text or one part after the other. `End`: what holds the size of the text.
template <typename End>
class CsvRowsReader {
 public:
  CsvRowsReader(char delimiter, const std::string& name, uint64_t bytes, const CsvSlices& slices)
      : delimiter_(delimiter), name_(name), bytes_(bytes), slices_(slices) {}

  // In the text's own memory.
  void take_all(std::string text) {
    std::vector<CsvCounts> counts((text.size() + slices_.bytes - 1) / slices_.bytes);
    take_on_all_cores(counts.size(), slices_, [&](size_t i) {
      counts[i] = most_in(std::string_view(text).substr(i * slices_.bytes, slices_.bytes), delimiter_);
    });
    CsvCounts all;
    for (const CsvCounts& of : counts) all = {all.cells + of.cells, all.rows + of.rows};
    make_room(ends_, all.cells, 1);
    make_room(rows_.lines, all.rows, 1);
    is_in_place_ = true;
    cells_ = std::move(text);
    parse(cells_, true, cells_.data());
    cells_.resize(bytes_of_cells_);
  }

  // The whole rows of the next part, and what is behind the last one if nothing follows (`is_last`). Returns
  // how many bytes they are: the others are to come again, with more behind them. The first part has at
  // least kBeginBytes, or is all.
  size_t take(std::string_view text, bool is_last) {
    block_.resize(std::max(block_.size(), text.size()));
    return parse(text, is_last, block_.data());
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
  // Of so many bytes of the text it is done with those that are returned.
  size_t parse(std::string_view text, bool is_last, char* out);
  void take_begin(CsvCells& cells, std::string_view text) const;
  // Sets the columns, if the row of their names is whole. Throws CsvRefusal.
  void take_names(CsvCells& cells, bool is_last);
  size_t take_rows(std::string_view text, bool is_last, char* out);
  void take_slice(CsvSlice<End>& slice) const;
  void lend_to(CsvSlice<End>& first);
  void add(CsvSlice<End>& slice);
  void add_cells(std::string_view cells);
  [[noreturn]] void refuse(const CsvRefusal& refusal) const {
    throw DataError(fmt::format("'{}', line {}: {}", name_, line_ + refusal.line, refusal.why));
  }

  const char delimiter_;
  const std::string& name_;
  const uint64_t bytes_;
  CsvSlices slices_;
  uint64_t passed_ = 0;  // bytes of the parts before
  double share_ = 0;     // of the text, with what is being taken
  bool is_begun_ = false;
  int64_t line_ = 1;  // of what is taken next
  TextList names_;
  CsvRows rows_;
  bool is_in_place_ = false;  // cells_ is the text, its begin has the cells
  std::string cells_, block_;
  size_t bytes_of_cells_ = 0;
  std::vector<End> ends_;
  size_t known_lines_ = 0;  // of rows_.lines, those of slices before
};

template <typename End>
size_t CsvRowsReader<End>::parse(std::string_view text, bool is_last, char* out) {
  size_t taken = 0;
  if (rows_.columns == 0) {
    CsvCells cells(text, is_last, out, delimiter_);
    if (!is_begun_) take_begin(cells, text);
    is_begun_ = true;
    try {
      take_names(cells, is_last);
    } catch (const CsvRefusal& refusal) {
      refuse(refusal);
    }
    line_ += cells.line();
    taken = cells.taken_text();
  }
  if (rows_.columns > 0) taken += take_rows(text.substr(taken), is_last, out + taken);
  passed_ += taken;
  return taken;
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
void CsvRowsReader<End>::take_names(CsvCells& cells, bool is_last) {
  cells.pass_empty_lines();
  if (cells.at_end() && is_last)
    throw DataError(fmt::format("'{}' is empty; its first line should name the columns", name_));
  if (cells.at_end()) return;
  rows_.columns = take_row(cells, 0, ends_);
  if (rows_.columns == 0) return;
  add_cells(cells.cells());
  names_ = TextList(std::string(cells.cells()), std::vector<End>(ends_));
  rows_.sorted_columns = sorted_names({names_, 0, rows_.columns}, name_);
}

// Some slices at a time, so that what they give is not there a second time as a whole.
template <typename End>
size_t CsvRowsReader<End>::take_rows(std::string_view text, bool is_last, char* out) {
  if (slices_.cores == 0 && text.size() > slices_.bytes) slices_.cores = slices_.cores_to_use();
  const size_t at_a_time = size_t{4} * static_cast<size_t>(std::max(slices_.cores, 1));
  size_t at = 0;
  while (at < text.size()) {
    std::vector<CsvSlice<End>> slices;
    while (at < text.size() && slices.size() < at_a_time) {
      const size_t end = next_row(text, at, slices_.bytes, delimiter_);
      slices.push_back({text.substr(at, end - at), is_last || end < text.size(), out + at});
      at = end;
    }
    share_ = static_cast<double>(passed_ + at) / static_cast<double>(bytes_);
    lend_to(slices.front());
    take_on_all_cores(slices.size(), slices_, [&](size_t i) { take_slice(slices[i]); });
    for (CsvSlice<End>& slice : slices) add(slice);
    if (at == text.size()) return at - slices.back().text.size() + slices.back().taken_text;
  }
  return 0;
}

template <typename End>
void CsvRowsReader<End>::take_slice(CsvSlice<End>& slice) const {
  const CsvCounts most = most_in(slice.text, delimiter_);
  make_room(slice.ends, most.cells, 1);
  make_room(slice.lines, most.rows, 1);
  CsvCells cells(slice.text, slice.is_last, slice.out, delimiter_);
  try {
    for (cells.pass_empty_lines(); !cells.at_end(); cells.pass_empty_lines()) {
      const auto line = cells.line();
      slice.lines.push_back(static_cast<uint32_t>(line));
      const size_t count = take_row(cells, slice.begin, slice.ends);
      if (count == 0) {
        slice.lines.pop_back();
        break;
      }
      if (count != rows_.columns)
        throw CsvRefusal{
            line, fmt::format("{} cells, where the first line names {} columns{}", count, rows_.columns,
                              rows_.columns == 1 ? delimiter_advice(names_[0], delimiter_) : "")};
    }
  } catch (const CsvRefusal& refusal) {
    slice.refusal = refusal;
  }
  slice.cells = cells.cells();
  slice.taken_text = cells.taken_text();
  slice.line_ends = cells.line();
}

// What it learns needs no second place then.
template <typename End>
void CsvRowsReader<End>::lend_to(CsvSlice<End>& first) {
  const CsvCounts most = most_in(first.text, delimiter_);
  make_room(ends_, most.cells, share_);
  make_room(rows_.lines, most.rows, share_);
  first.begin = bytes_of_cells_;
  first.ends = std::move(ends_);
  known_lines_ = rows_.lines.size();
  first.lines = std::move(rows_.lines);
  ends_.clear();
  rows_.lines.clear();
}

template <typename End>
void CsvRowsReader<End>::add(CsvSlice<End>& slice) {
  const bool is_first = ends_.empty();  // the names are always there
  if (is_first) {
    ends_ = std::move(slice.ends);
    rows_.lines = std::move(slice.lines);
  } else {
    known_lines_ = rows_.lines.size();
    make_room(ends_, slice.ends.size(), share_);
    for (const End end : slice.ends) ends_.push_back(static_cast<End>(bytes_of_cells_ + end));
    make_room(rows_.lines, slice.lines.size(), share_);
    rows_.lines.insert(rows_.lines.end(), slice.lines.begin(), slice.lines.end());
  }
  for (size_t i = known_lines_; i < rows_.lines.size(); ++i) {
    require_countable(line_ + rows_.lines[i], name_);
    rows_.lines[i] = static_cast<uint32_t>(line_ + rows_.lines[i]);
  }
  if (slice.refusal) refuse(*slice.refusal);
  add_cells(slice.cells);
  line_ += slice.line_ends;
}

template <typename End>
void CsvRowsReader<End>::add_cells(std::string_view cells) {
  if (is_in_place_) {
    std::memmove(cells_.data() + bytes_of_cells_, cells.data(), cells.size());
  } else {
    make_room(cells_, cells.size(), share_);
    cells_ += cells;
  }
  bytes_of_cells_ += cells.size();
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
  CsvRowsReader<End> reader(delimiter, name, stream.left(), {});
  std::exception_ptr refusal;
  size_t held = 0;    // of the text's bytes, those that came before
  int64_t lines = 0;  // line ends before the text
  bool is_begun = false;
  read_in_blocks(stream, block_bytes, [&](std::string_view text, bool is_last) {
    require_memory(reader.bytes() + text.size(), name);
    *checksum = crc32_of_slices(text.substr(held), *checksum);
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

CsvRows csv_rows(std::string text, char delimiter, const std::string& name, const CsvSlices& slices) {
  const auto take = [&]<typename End>(CsvRowsReader<End> reader) {
    reader.take_all(std::move(text));
    return reader.finish();
  };
  if (text.size() > UINT32_MAX) return take(CsvRowsReader<uint64_t>(delimiter, name, text.size(), slices));
  return take(CsvRowsReader<uint32_t>(delimiter, name, text.size(), slices));
}

CsvRows csv_rows(ByteStream& text, size_t block_bytes, char delimiter, const std::string& name,
                 uint32_t* checksum) {
  const auto read = text.left() > UINT32_MAX ? rows_in_blocks<uint64_t> : rows_in_blocks<uint32_t>;
  return read(text, block_bytes, delimiter, name, checksum);
}

}  // namespace mox::data::internal
