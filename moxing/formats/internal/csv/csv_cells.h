// The cells of a table of text, taken one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mox::data::internal {

// Why a text is no table, and where: a line, counted from 0 at the begin of the text.
struct CsvRefusal {
  int64_t line;
  std::string why;
};

// Takes cells off a text, which may be cut anywhere: what is taken of a row that is not whole (is_cut) counts
// for nothing, and is to be taken again where more of it is there.
class CsvCells {
 public:
  // The cells go to `out`, which has room for the text and may be its own memory, as a cell never grows.
  // `is_last`: nothing follows the text.
  CsvCells(std::string_view text, bool is_last, char* out, char delimiter)
      : text_(text.data()),
        at_(text.data()),
        end_(text.data() + text.size()),
        is_last_(is_last),
        out_(out),
        to_(out),
        delimiter_(delimiter) {}

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
  int64_t line() const { return line_; }                // that the next cell begins in, from 0
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
  void pass_empty_lines();

  // Sets *last if the line ends behind it. Throws CsvRefusal.
  void take(bool* last);

 private:
  bool is_line_end() const { return *at_ == '\n' || *at_ == '\r'; }
  void pass_spaces() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t') && *at_ != delimiter_) ++at_;
  }
  void take_line_end();
  void take_plain();
  void take_quoted();

  const char* const text_;
  const char* at_;
  const char* const end_;
  const bool is_last_;
  char* const out_;
  char* to_;  // where the next cell goes
  const char delimiter_;
  int64_t line_ = 0;
};

}  // namespace mox::data::internal
