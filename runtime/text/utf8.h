// Text of others that should be UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mox {

// How many bytes at the begin are UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
size_t utf8_prefix(std::string_view text);

bool is_utf8(std::string_view text);

// How many bytes the character at the begin of `text`, which is not empty, has, and which it is; 0 for bytes
// that are none.
size_t first_character(std::string_view text, uint32_t* character);

void append_utf8(uint32_t character, std::string* text);

// Without the byte order mark with which editors of Windows begin a file.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace mox
