#include "moxing/formats/internal/pickle_text.h"

#include <algorithm>
#include <charconv>

#include "runtime/text/utf8.h"

namespace mox::data::internal {
namespace {

// The number that the first `digits` characters write in base 16.
std::optional<uint32_t> hexadecimal(std::string_view text, size_t digits) {
  uint32_t value = 0;
  if (text.size() < digits) return std::nullopt;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + digits, value, 16);
  if (error != std::errc() || rest != text.data() + digits) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> latin1_of_utf8(std::string_view utf8) {
  std::string result;
  result.reserve(utf8.size());
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto lead = static_cast<uint8_t>(utf8[i]);
    if (lead < 0x80) {
      result += utf8[i];
      continue;
    }
    if ((lead != 0xc2 && lead != 0xc3) || i + 1 == utf8.size() ||
        (static_cast<uint8_t>(utf8[i + 1]) & 0xc0) != 0x80)
      return std::nullopt;
    result += static_cast<char>((lead & 3) << 6 | (static_cast<uint8_t>(utf8[++i]) & 0x3f));
  }
  return result;
}

std::optional<std::string> bytes_of_repr(std::string_view repr) {
  if (repr.size() < 2 || repr.front() != repr.back() || (repr[0] != '\'' && repr[0] != '"'))
    return std::nullopt;
  repr = repr.substr(1, repr.size() - 2);
  std::string bytes;
  bytes.reserve(repr.size());
  for (size_t i = 0; i < repr.size(); ++i) {
    if (repr[i] != '\\') {
      bytes += repr[i];
      continue;
    }
    if (++i == repr.size()) return std::nullopt;
    switch (repr[i]) {
      case 'n':
        bytes += '\n';
        break;
      case 'r':
        bytes += '\r';
        break;
      case 't':
        bytes += '\t';
        break;
      case '\\':
      case '\'':
      case '"':
        bytes += repr[i];
        break;
      case 'x': {
        const auto value = hexadecimal(repr.substr(i + 1), 2);
        if (!value) return std::nullopt;
        bytes += static_cast<char>(*value);
        i += 2;
        break;
      }
      default:
        return std::nullopt;
    }
  }
  return bytes;
}

std::optional<std::string> utf8_of_raw_unicode(std::string_view raw) {
  std::string text;
  text.reserve(raw.size() + static_cast<size_t>(std::ranges::count_if(raw, [](char c) { return c < 0; })));
  for (size_t i = 0; i < raw.size(); ++i) {
    const bool is_escape = raw[i] == '\\' && i + 1 < raw.size() && (raw[i + 1] == 'u' || raw[i + 1] == 'U');
    if (!is_escape) {
      append_utf8(static_cast<uint8_t>(raw[i]), &text);
      continue;
    }
    const size_t digits = raw[i + 1] == 'u' ? 4 : 8;
    const auto value = hexadecimal(raw.substr(i + 2), digits);
    if (!value || *value > 0x10ffff) return std::nullopt;
    append_utf8(*value, &text);
    i += 1 + digits;
  }
  return text;
}

std::optional<int64_t> integer_of(std::string_view line) {
  if (line.ends_with('L')) line.remove_suffix(1);
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || rest != line.data() + line.size()) return std::nullopt;
  return value;
}

int64_t integer_of_bytes(std::string_view bytes, bool is_signed, bool is_big_endian) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t at = is_big_endian ? bytes.size() - 1 - i : i;
    value |= uint64_t{static_cast<uint8_t>(bytes[at])} << (8 * i);
  }
  const size_t bits = 8 * bytes.size();
  const bool is_negative = is_signed && bits > 0 && bits < 64 && (value >> (bits - 1)) != 0;
  return static_cast<int64_t>(is_negative ? value | ~uint64_t{0} << bits : value);
}

}  // namespace mox::data::internal
