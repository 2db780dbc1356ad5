// CRC-32 values as text: eight lower-case hexadecimal digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/file.h"

namespace mox::internal {

inline constexpr size_t kChecksumDigits = 8;

std::string checksum_text(uint32_t crc32);
// Nothing for any other text (upper-case digits included, so that a text stands for one value and back).
std::optional<uint32_t> parse_checksum(std::string_view text);

inline uint32_t crc32_of(std::string_view text, uint32_t previous = 0) {
  return crc32(std::as_bytes(std::span(text.data(), text.size())), previous);
}

}  // namespace mox::internal
