#include "moxing/checkpoint/internal/checksum_text.h"

#include <fmt/format.h>

namespace mox::internal {

std::string checksum_text(uint32_t crc32) { return fmt::format("{:08x}", crc32); }

std::optional<uint32_t> parse_checksum(std::string_view text) {
  if (text.size() != kChecksumDigits) return std::nullopt;
  uint32_t value = 0;
  for (char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return value;
}

}  // namespace mox::internal
