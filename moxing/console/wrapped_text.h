// Text of --help within the width of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mox {

// Columns for text on standard output: the environment's COLUMNS, else those of the terminal, else 80; at
// least 40, and at most 120, beyond which lines are hard to read.
size_t text_width();

// `text` in lines of at most `width` columns (a longer word stays whole), each behind `indent` blanks, with
// an end of line behind the last.
std::string wrapped(std::string_view text, size_t indent, size_t width);

// Lines that are longer than `width` are broken at blanks. What follows stands under the line's last column
// of text, that is behind its last gap of two blanks or more, as far as that leaves half of the width.
std::string wrapped_lines(std::string_view lines, size_t width);

}  // namespace mox
