#include "moxing/formats/internal/csv/csv_cells.h"

#include <cstring>

#include "moxing/formats/internal/csv/csv_text.h"

namespace mox::data::internal {

void CsvCells::pass_empty_lines() {
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

void CsvCells::take(bool* last) {
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

void CsvCells::take_line_end() {
  if (at_ == end_) return;
  if (*at_ == '\r' && at_ + 1 != end_ && at_[1] == '\n') ++at_;
  ++at_;
  ++line_;
}

void CsvCells::take_plain() {
  const char* const begin = at_;
  while (at_ != end_ && *at_ != delimiter_ && !is_line_end()) ++at_;
  const std::string_view cell = without_spaces({begin, static_cast<size_t>(at_ - begin)});
  std::memmove(to_, cell.data(), cell.size());
  to_ += cell.size();
}

void CsvCells::take_quoted() {
  const int64_t began = line_;
  for (++at_;; ++at_) {
    if (is_cut()) return;
    if (at_ == end_) throw CsvRefusal{began, "the quote (\") that begins a cell here does not end"};
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
    throw CsvRefusal{line_,
                     "text follows the quote (\") that ends a cell; quotes within a cell are doubled (\"\")"};
}

}  // namespace mox::data::internal
