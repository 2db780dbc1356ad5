#include "runtime/text/printable.h"

#include <cstdint>
#include <cstdio>

namespace mox {
namespace {

constexpr std::string_view kIndentation = "  ";

unsigned byte_at(std::string_view text, size_t place) { return static_cast<unsigned char>(text[place]); }

// How many bytes the character at the begin of `text` has in UTF-8 (RFC 3629), and which it is; 0 for bytes
// that are none.
size_t first_character(std::string_view text, uint32_t* character) {
  const unsigned first = byte_at(text, 0);
  *character = first;
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || length > text.size()) return 0;
  *character = first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    const unsigned next = byte_at(text, i);
    if ((next & 0xc0U) != 0x80) return 0;
    *character = *character << 6 | (next & 0x3fU);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = *character >= 0xd800 && *character <= 0xdfff;
  return *character < kSmallest[length] || *character > 0x10ffff || is_surrogate ? 0 : length;
}

// What is obeyed and not shown: control characters, separators of lines and paragraphs, and what writes text
// against its direction.
bool is_control(uint32_t character) {
  return character < 0x20 || (character >= 0x7f && character <= 0x9f) ||
         (character >= 0x2028 && character <= 0x202e) || (character >= 0x2066 && character <= 0x2069);
}

std::string escaped(const char* format, unsigned value) {
  char text[16];
  const int length = std::snprintf(text, sizeof text, format, value);
  return {text, static_cast<size_t>(length)};
}

std::string shown(uint32_t character) {
  if (character == '\n') return "\\n";
  if (character == '\t') return "\\t";
  if (character == '\r') return "\\r";
  return escaped(character < 0x80 ? "\\x%02x" : "\\u{%x}", character);
}

std::string without_controls(std::string_view text, std::string_view kept, std::string_view indentation) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    uint32_t character = 0;
    const size_t length = first_character(text.substr(at), &character);
    const std::string_view bytes = text.substr(at, length == 0 ? 1 : length);
    if (length == 0)
      result += escaped("\\x%02x", byte_at(text, at));
    else if (is_control(character) && kept.find(bytes) == std::string_view::npos)
      result += shown(character);
    else
      result += bytes;
    at += bytes.size();
    const bool begins_a_line = bytes == "\n" && at < text.size() && text[at] != '\n';
    if (begins_a_line && result.ends_with('\n') && !text.substr(at).starts_with(indentation))
      result += indentation;
  }
  return result;
}

}  // namespace

std::string printable(std::string_view name) { return without_controls(name, "", ""); }
std::string printable_lines(std::string_view text) { return without_controls(text, "\n\t", ""); }
std::string printable_message(std::string_view message) {
  return without_controls(message, "\n\t", kIndentation);
}

}  // namespace mox
