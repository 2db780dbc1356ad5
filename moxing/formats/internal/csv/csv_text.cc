#include "moxing/formats/internal/csv/csv_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "moxing/file/file.h"
#include "moxing/formats/internal/csv/csv_slices.h"
#include "runtime/base/error.h"
#include "runtime/text/utf8.h"

namespace mox::data::internal {
namespace {

// The line of a shell that gives a file, or an object of a store, to a command.
std::string piped(const std::string& name, std::string_view command) {
  return file::is_remote(name) ? fmt::format("mox file cat '{}' | {} > new.csv", name, command)
                               : fmt::format("{} '{}' > new.csv", command, name);
}

}  // namespace

int64_t line_ends(std::string_view text) {
  int64_t count = 0;
  for (size_t i = 0; i < text.size(); ++i)
    count += text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'));
  return count;
}

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

std::string_view without_mark(std::string_view content, const std::string& name) {
  if (content.starts_with("\xff\xfe") || content.starts_with("\xfe\xff"))
    throw DataError(fmt::format("'{}' is text in UTF-16; UTF-8 is expected: {}", name,
                                piped(name, "iconv -f UTF-16 -t UTF-8")));
  if (content.starts_with("\x1f\x8b"))
    throw DataError(
        fmt::format("'{}' is compressed by gzip: unpack it with {}", name, piped(name, "gunzip -c")));
  if (content.starts_with("PK\x03\x04"))
    throw DataError(fmt::format("'{}' is a zip archive or a spreadsheet (.xlsx): save it as CSV", name));
  return without_byte_order_mark(content);
}

size_t require_utf8(std::string_view text, const std::string& name, bool is_last, int64_t lines) {
  constexpr size_t kLongestBegin = 3;
  const size_t at = utf8_prefix_of_slices(text);
  const auto is_of_a_character = [](char letter) { return static_cast<unsigned char>(letter) >= 0x80; };
  const bool is_cut = !is_last && text.size() - at <= kLongestBegin &&
                      std::all_of(text.begin() + at, text.end(), is_of_a_character);
  if (at == text.size() || is_cut) return at;
  const auto byte = static_cast<unsigned char>(text[at]);
  throw DataError(fmt::format(
      "'{}', line {}: the byte 0x{:02x} is no UTF-8, which is expected; is this file in Latin-1, as older "
      "spreadsheets write it? {}",
      name, lines + 1 + line_ends(text.substr(0, at)), byte, piped(name, "iconv -f WINDOWS-1252 -t UTF-8")));
}

std::optional<std::string_view> with_decimal_point(std::string_view number, char decimal,
                                                   std::string* memory) {
  if (decimal == '.') return number;
  if (number.find('.') != std::string_view::npos) return std::nullopt;
  *memory = number;
  std::replace(memory->begin(), memory->end(), decimal, '.');
  return *memory;
}

}  // namespace mox::data::internal
