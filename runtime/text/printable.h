// What comes from files and from others (names, cells, keys, what a server answers), as it may be shown on a
// terminal. There an escape sequence would move the cursor, change what was printed before, or more; and who
// reads a log would take a line in a name for one of ours.
#pragma once

#include <string>
#include <string_view>

namespace mox {

// A name, on one line: control characters (tabs and ends of lines, too), characters that change the direction
// of text, and bytes that are no UTF-8 as \n, \t, \r, \x1b or \u{202e}. Everything else as it is.
std::string printable(std::string_view name);

// A text of several lines: tabs and ends of lines stay.
std::string printable_lines(std::string_view text);

// A message: as printable_lines, and lines behind the first are indented, so that none looks
// like another message.
std::string printable_message(std::string_view message);

}  // namespace mox
