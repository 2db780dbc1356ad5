// The numbers of a CSV file, whose text comes in blocks. A block is cut behind line ends into slices, which
// all cores parse side by side (a quoted cell of a number does not pass the end of a line); what they give is
// put together in the file's order, so neither numbers nor errors depend on the cuts or on the cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/formats/csv.h"

namespace mox::data::internal {

// The next line, which is taken off `content`.
std::string_view take_line(std::string_view* content);

// The next cell, which is taken off `line` with the delimiter behind it; *more says whether another one
// follows. Quotes around it are left out, and doubled ones within are one: `memory` then holds the cell.
std::string_view take_cell(std::string_view* line, char delimiter, bool* more, std::string* memory);

// Throws DataError.
[[noreturn]] void refuse_long_line(const std::string& name, int64_t line, size_t longest);

class CsvNumbers {
 public:
  // Throws InvalidArgument for options that exclude each other. `name` stands for the path in messages; lines
  // of more than `longest_line` bytes are refused. In `whole_column` (from 0) no cell may be missing.
  CsvNumbers(const CsvOptions& options, std::string name, size_t longest_line,
             std::optional<int64_t> whole_column = std::nullopt);

  // Parses the whole lines of `text`, and what is behind the last one if nothing follows (`is_last`). Returns
  // how many bytes they are: the others are to come again, with more behind them. Throws DataError.
  size_t take(std::string_view text, bool is_last);

  // float32 [rows, columns]; call once, last.
  Array finish();

 private:
  struct Slice;
  // The whole lines of `text`, as above.
  static size_t whole_lines(std::string_view text, bool is_last);
  Slice parse(std::string_view text) const;
  void add(Slice slice);
  // As a person has set it.
  std::string option(std::string_view field) const;
  void warn_of_numbers(std::string_view header) const;
  [[noreturn]] void refuse_cell(const std::string& cell, int64_t line, int64_t column) const;
  [[noreturn]] void refuse_line(int64_t line, int64_t columns) const;

  CsvOptions options_;
  std::string name_;
  size_t longest_line_;
  std::optional<int64_t> whole_column_;
  bool header_, is_first_ = true;
  int64_t lines_ = 0, rows_ = 0, columns_ = 0;
  std::vector<std::vector<float>> parts_;
};

}  // namespace mox::data::internal
