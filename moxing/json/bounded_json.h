// JSON from files that others may have written: how much memory reading it takes, before it is read.
#pragma once

#include <string>
#include <string_view>

namespace mox {

// Throws DataError, with `name` in the text, if the values of `text` would take more memory than 16 times the
// text and 1 MiB, as a list of so many empty lists does, or are nested more than 1000 deep: the library
// copies and writes such values by recursion. What a program writes by itself stays far below. A text that is
// no JSON passes: the parser says what is wrong with it, unless it would say it with thousands of blanks.
// Takes as much memory as the longest text in it, and as all of it where it has thousands of blanks without a
// text or a number among them.
void require_bounded_json(std::string_view text, const std::string& name);

// The same with another bound: `times` the text, or that of 16 KiB where the text is shorter.
void require_bounded_json(std::string_view text, const std::string& name, size_t times);

}  // namespace mox
