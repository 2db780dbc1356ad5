#include "moxing/tabular/internal/letters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "runtime/text/utf8.h"

namespace mox::internal {
namespace {

// Letters that are one character with what is put on them, and the same ones without it.
struct Accented {
  uint32_t accent;
  std::u16string_view plain, accented;
};
constexpr Accented kAccented[] = {
    {0x300, u"AEIOUaeiouЕИеи", u"ÀÈÌÒÙàèìòùЀЍѐѝ"},
    {0x301, u"AEIOUYaeiouyCcLlNnRrSsZzΑΕΗΙΟΥΩαεηιουωГКгк", u"ÁÉÍÓÚÝáéíóúýĆćĹĺŃńŔŕŚśŹźΆΈΉΊΌΎΏάέήίόύώЃЌѓќ"},
    {0x302, u"AEIOUaeiouCcGgHhJjSsWwYy", u"ÂÊÎÔÛâêîôûĈĉĜĝĤĥĴĵŜŝŴŵŶŷ"},
    {0x303, u"ANOanoIiUu", u"ÃÑÕãñõĨĩŨũ"},
    {0x304, u"AaEeIiOoUu", u"ĀāĒēĪīŌōŪū"},
    {0x306, u"AaEeGgIiOoUuУИиу", u"ĂăĔĕĞğĬĭŎŏŬŭЎЙйў"},
    {0x307, u"CcEeGgIZz", u"ĊċĖėĠġİŻż"},
    {0x308, u"AEIOUaeiouyYΙΥιυЕІеі", u"ÄËÏÖÜäëïöüÿŸΪΫϊϋЁЇёї"},
    {0x30a, u"AaUu", u"ÅåŮů"},
    {0x30b, u"OoUu", u"ŐőŰű"},
    {0x30c, u"CcDdEeLlNnRrSsTtZz", u"ČčĎďĚěĽľŇňŘřŠšŤťŽž"},
    {0x326, u"SsTt", u"ȘșȚț"},
    {0x327, u"CcGgKkLlNnRrSsTt", u"ÇçĢģĶķĻļŅņŖŗŞşŢţ"},
    {0x328, u"AaEeIiUu", u"ĄąĘęĮįŲų"},
};

// Signs that Unicode has twice: of micro, ohm, kelvin and angstrom.
constexpr Accented kSigns = {0, u"μΩKÅ", u"\u00b5\u2126\u212a\u212b"};

bool is_space(uint32_t character) {
  constexpr std::u16string_view kSpaces = u"\t\n\r\u00a0\u1680\u202f\u205f\u3000";
  return (character >= 0x2000 && character <= 0x200a) ||
         (character <= 0xffff && kSpaces.find(static_cast<char16_t>(character)) != kSpaces.npos);
}

// Soft hyphens, joiners and marks of direction, byte order marks.
bool is_unseen(uint32_t character) {
  return character == 0xad || (character >= 0x200b && character <= 0x200f) || character == 0x2060 ||
         character == 0xfeff;
}

bool is_accent(uint32_t character) { return character >= 0x300 && character <= 0x36f; }

// Of letters without accents; those of Latin that stand in pairs from U+0100 on have the small one second.
uint32_t small_letter(uint32_t character) {
  constexpr std::u16string_view kFirstOfPairs = u"ĐĦĲĿŁŊŒŦ";
  const bool of_ascii = character >= 'A' && character <= 'Z';
  const bool of_latin1 = character >= 0xc0 && character <= 0xde && character != 0xd7;
  const bool of_greek = character >= 0x391 && character <= 0x3a9;
  const bool of_cyrillic = character >= 0x410 && character <= 0x42f;
  if (of_ascii || of_latin1 || of_greek || of_cyrillic) return character + 0x20;
  if (character >= 0x400 && character <= 0x40f) return character + 0x50;
  if (character == 0x3c2) return 0x3c3;  // a sigma at the end of a word
  return character <= 0xffff && kFirstOfPairs.find(static_cast<char16_t>(character)) != kFirstOfPairs.npos
             ? character + 1
             : character;
}

template <typename Function>
void for_each_character(std::string_view text, const Function& function) {
  while (!text.empty()) {
    uint32_t character = 0;
    const size_t length = first_character(text, &character);
    constexpr uint32_t kNone = 0xfffd;
    const std::string_view bytes = text.substr(0, std::max(length, size_t{1}));
    function(length == 0 ? kNone : character, bytes);
    text.remove_prefix(bytes.size());
  }
}

void append_as_seen(uint32_t character, std::string_view bytes, std::string* text) {
  if (is_unseen(character)) return;
  if (is_space(character)) {
    *text += ' ';
    return;
  }
  if (bytes.size() > 1 && character <= 0xffff) {
    auto letter = static_cast<char16_t>(character);
    if (const size_t at = kSigns.accented.find(letter); at != kSigns.accented.npos) letter = kSigns.plain[at];
    for (const Accented& letters : kAccented)
      if (const size_t at = letters.accented.find(letter); at != letters.accented.npos) {
        append_utf8(letters.plain[at], text);
        append_utf8(letters.accent, text);
        return;
      }
    if (letter != character) {
      append_utf8(letter, text);
      return;
    }
  }
  *text += bytes;
}

}  // namespace

std::string as_seen(std::string_view text) {
  std::string result;
  for_each_character(
      text, [&](uint32_t character, std::string_view bytes) { append_as_seen(character, bytes, &result); });
  return result;
}

std::string folded(std::string_view text) {
  std::string result;
  for_each_character(as_seen(text), [&](uint32_t character, std::string_view bytes) {
    if (character == ' ' && (result.empty() || result.ends_with(' '))) return;
    const uint32_t small = small_letter(character);
    if (small == character)
      result += bytes;
    else
      append_utf8(small, &result);
  });
  while (result.ends_with(' ')) result.pop_back();
  return result;
}

std::string spelled_out(std::string_view text) {
  std::string result;
  for_each_character(text, [&](uint32_t character, std::string_view bytes) {
    const bool is_sign =
        character <= 0xffff && kSigns.accented.find(static_cast<char16_t>(character)) != kSigns.accented.npos;
    if (bytes.size() > 1 && (is_unseen(character) || is_space(character) || is_accent(character) || is_sign))
      result += fmt::format("\\u{{{:x}}}", character);
    else
      result += bytes;
  });
  return result;
}

}  // namespace mox::internal
