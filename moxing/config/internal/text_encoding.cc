#include "moxing/config/internal/text_encoding.h"

#include <fmt/format.h>

#include <cstdint>

#include "runtime/base/error.h"
#include "runtime/text/utf8.h"

namespace mox::internal {
namespace {

std::string from_utf16(const std::string& bytes, bool big_endian, const std::string& path) {
  const auto fail = [&](size_t offset) {
    throw ConfigError(
        fmt::format("{}: the file begins as UTF-16 but is none at byte {}; save it as UTF-8.", path, offset));
  };
  const auto unit = [&](size_t at) {
    const auto first = static_cast<uint8_t>(bytes[at]), second = static_cast<uint8_t>(bytes[at + 1]);
    return static_cast<uint32_t>(big_endian ? first << 8 | second : second << 8 | first);
  };
  if (bytes.size() % 2 != 0) fail(bytes.size() - 1);
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 2) {
    uint32_t character = unit(at);
    if (at == 0 && character == 0xfeff) continue;
    if (character >= 0xd800 && character < 0xe000) {  // the first of a pair
      const uint32_t low = at + 3 < bytes.size() ? unit(at + 2) : 0;
      if (character >= 0xdc00 || low < 0xdc00 || low >= 0xe000) fail(at);
      character = 0x10000 + ((character - 0xd800) << 10) + (low - 0xdc00);
      at += 2;
    }
    append_utf8(character, &text);
  }
  return text;
}

}  // namespace

std::string as_utf8(const std::string& bytes, const std::string& path) {
  using namespace std::string_literals;
  if (bytes.starts_with("\xff\xfe\0\0"s) || bytes.starts_with("\0\0\xfe\xff"s) ||
      (bytes.size() >= 4 && (bytes.compare(1, 3, "\0\0\0"s) == 0 || bytes.starts_with("\0\0\0"s))))
    throw ConfigError(fmt::format("{}: the file is encoded as UTF-32; save it as UTF-8.", path));
  if (bytes.starts_with("\xff\xfe")) return from_utf16(bytes, false, path);
  if (bytes.starts_with("\xfe\xff")) return from_utf16(bytes, true, path);
  if (bytes.size() >= 4 && !bytes[0] != !bytes[1] && !bytes[0] == !bytes[2] && !bytes[1] == !bytes[3])
    return from_utf16(bytes, bytes[0] == '\0', path);
  return std::string(without_byte_order_mark(bytes));
}

}  // namespace mox::internal
