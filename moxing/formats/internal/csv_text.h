// What all readers of CSV files do with text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mox::data::internal {

// What `path` holds: a file of this machine, or an object of a store (which many ranged requests bring).
// Throws NotFound and IoError.
std::string csv_content(const std::string& path);

// Without spaces and tabs around it.
std::string_view without_spaces(std::string_view text);

// Without a byte order mark. Throws DataError, naming the file `name`, for what is no text in UTF-8 but
// UTF-16 or an archive.
std::string_view without_mark(std::string_view content, const std::string& name);

// A number with '.' as its decimal mark, held by `memory` if `decimal` is another. Nothing for one that has a
// '.' where `decimal` is another: it groups digits, and is no number.
std::optional<std::string_view> with_decimal_point(std::string_view number, char decimal,
                                                   std::string* memory);

// Throws DataError, naming the line and the command that mends it, for bytes that are no UTF-8 (as Latin-1
// has them).
void require_utf8(std::string_view content, const std::string& name);

}  // namespace mox::data::internal
