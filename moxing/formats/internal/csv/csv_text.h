// What all readers of CSV files do with text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mox::data::internal {

// Without spaces and tabs around it.
std::string_view without_spaces(std::string_view text);

// Without a byte order mark. Throws DataError, naming the file `name`, for what is no text in UTF-8 but
// UTF-16 or an archive.
std::string_view without_mark(std::string_view content, const std::string& name);

// A number with '.' as its decimal mark, held by `memory` if `decimal` is another. Nothing for one that has a
// '.' where `decimal` is another: it groups digits, and is no number.
std::optional<std::string_view> with_decimal_point(std::string_view number, char decimal,
                                                   std::string* memory);

// Of \n, \r\n and \r alike.
int64_t line_ends(std::string_view text);

// Throws DataError, naming the line and the command that mends it, for bytes that are no UTF-8 (as Latin-1
// has them). Returns how many bytes are whole characters: all, but for what may be the begin of one at the
// end where more follows. `lines` is the number of line ends before the text.
size_t require_utf8(std::string_view text, const std::string& name, bool is_last = true, int64_t lines = 0);

}  // namespace mox::data::internal
