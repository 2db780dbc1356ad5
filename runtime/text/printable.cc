#include "runtime/text/printable.h"

#include <cstdint>
#include <cstdio>

#include "runtime/text/utf8.h"

namespace mox {
namespace {

constexpr std::string_view kIndentation = "  ";

unsigned byte_at(std::string_view text, size_t place) { return static_cast<unsigned char>(text[place]); }

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
