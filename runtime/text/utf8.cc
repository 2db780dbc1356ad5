#include "runtime/text/utf8.h"

namespace mox {

size_t utf8_prefix(std::string_view text) {
  size_t at = 0;
  const auto byte = [&](size_t place) -> unsigned { return static_cast<unsigned char>(text[place]); };
  while (at < text.size()) {
    const unsigned first = byte(at);
    if (first < 0x80) {
      ++at;
      continue;
    }
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > text.size() - at) return at;
    const unsigned lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (byte(at + 1) < lowest || byte(at + 1) > highest) return at;
    for (size_t i = 2; i < length; ++i)
      if (byte(at + i) < 0x80 || byte(at + i) > 0xbf) return at;
    at += length;
  }
  return at;
}

bool is_utf8(std::string_view text) { return utf8_prefix(text) == text.size(); }

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

}  // namespace mox
