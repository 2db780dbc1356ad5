// The spellings of strings and numbers in pickles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mox::data::internal {

// The bytes that are the characters of the text in latin1; nothing for a character beyond it.
std::optional<std::string> latin1_of_utf8(std::string_view utf8);

// What Python 2's repr writes of a string, 'a\x00\n', as its bytes; nothing if it is malformed.
std::optional<std::string> bytes_of_repr(std::string_view repr);
// Python's raw-unicode-escape, latin1 with \u0000 and \U00000000, as UTF-8; nothing if it is malformed.
std::optional<std::string> utf8_of_raw_unicode(std::string_view raw);

// A whole line: "12", "-3", or "12L"; nothing for another text and for what 64 bits do not hold.
std::optional<int64_t> integer_of(std::string_view line);

// A two's complement number of up to eight bytes, the lowest first.
int64_t integer_of_bytes(std::string_view bytes, bool is_signed, bool is_big_endian);

}  // namespace mox::data::internal
