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

size_t first_character(std::string_view text, uint32_t* character) {
  const unsigned first = static_cast<unsigned char>(text[0]);
  *character = first;
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || length > text.size()) return 0;
  *character = first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    const unsigned next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80) return 0;
    *character = *character << 6 | (next & 0x3fU);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = *character >= 0xd800 && *character <= 0xdfff;
  return *character < kSmallest[length] || *character > 0x10ffff || is_surrogate ? 0 : length;
}

void append_utf8(uint32_t character, std::string* text) {
  const auto continuation = [&](int shift) {
    text->push_back(static_cast<char>(0x80 | ((character >> shift) & 0x3f)));
  };
  if (character < 0x80) {
    text->push_back(static_cast<char>(character));
  } else if (character < 0x800) {
    text->push_back(static_cast<char>(0xc0 | (character >> 6)));
    continuation(0);
  } else if (character < 0x10000) {
    text->push_back(static_cast<char>(0xe0 | (character >> 12)));
    continuation(6);
    continuation(0);
  } else {
    text->push_back(static_cast<char>(0xf0 | (character >> 18)));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

}  // namespace mox
