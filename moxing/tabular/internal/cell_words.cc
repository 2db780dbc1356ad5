#include "moxing/tabular/internal/cell_words.h"

#include <algorithm>
#include <array>

#include "moxing/formats/csv_table.h"
#include "runtime/base/nearest_name.h"

namespace mox::internal {
namespace {

constexpr std::string_view kNoBreakSpaces[] = {"\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89"};
constexpr std::string_view kCurrencies[] = {"$", "€", "£", "¥", "EUR", "USD", "CHF"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// With spaces of every kind as the one of ASCII.
std::string with_plain_spaces(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto space =
        std::ranges::find_if(kNoBreakSpaces, [&](std::string_view kind) { return text.starts_with(kind); });
    const bool is_space = space != std::end(kNoBreakSpaces);
    const char letter = text[0];
    result += is_space || letter == '\t' || letter == '\n' || letter == '\r' ? ' ' : letter;
    text.remove_prefix(is_space ? space->size() : 1);
  }
  return result;
}

void trim(std::string_view* text) {
  while (text->starts_with(' ')) text->remove_prefix(1);
  while (text->ends_with(' ')) text->remove_suffix(1);
}

// 1,342,000 or 1'342.5 without its separators, which are all the same and not the decimal mark.
std::optional<std::string> without_thousands(std::string_view digits, char decimal) {
  const size_t first = digits.find_first_not_of("0123456789");
  if (first == std::string_view::npos || first == 0 || first > 3) return std::nullopt;
  const char separator = digits[first];
  if (separator == decimal || std::string_view(",.' _").find(separator) == std::string_view::npos)
    return std::nullopt;
  std::string plain(digits.substr(0, first));
  digits.remove_prefix(first);
  while (digits.starts_with(separator)) {
    const std::string_view group = digits.substr(1, 3);
    if (group.size() != 3 || !std::ranges::all_of(group, is_digit)) return std::nullopt;
    plain += group;
    digits.remove_prefix(4);
  }
  return plain + std::string(digits);
}

// In small letters of ASCII (a locale may have others), with single spaces and none around.
std::string folded(std::string_view word) {
  const std::string plain = lower_case(with_plain_spaces(word));
  std::string result;
  for (const char letter : plain) {
    if (letter == ' ' && (result.empty() || result.ends_with(' '))) continue;
    result += letter;
  }
  while (result.ends_with(' ')) result.pop_back();
  return result;
}

}  // namespace

std::optional<DisguisedNumber> disguised_number(std::string_view cell, char decimal) {
  if (data::parse_number(cell, decimal)) return std::nullopt;
  const std::string spaced = with_plain_spaces(cell);
  std::string_view rest = spaced;
  std::string why;
  trim(&rest);
  std::string sign;
  if (rest.starts_with('-') || rest.starts_with('+')) {
    if (rest[0] == '-') sign = "-";
    rest.remove_prefix(1);
  }
  for (const std::string_view currency : kCurrencies)
    if (rest.starts_with(currency) || rest.ends_with(currency)) {
      if (rest.starts_with(currency))
        rest.remove_prefix(currency.size());
      else
        rest.remove_suffix(currency.size());
      why = "a currency";
      break;
    }
  if (rest.ends_with('%')) {
    rest.remove_suffix(1);
    why = "a percent sign";
  }
  trim(&rest);
  if (sign.empty() && rest.starts_with('-')) {
    sign = "-";
    rest.remove_prefix(1);
  }
  if (rest.empty() || !is_digit(rest[0])) return std::nullopt;
  if (data::parse_number(rest, decimal))
    return DisguisedNumber{sign + std::string(rest), why.empty() ? "spaces" : why};
  if (auto plain = without_thousands(rest, decimal); plain && data::parse_number(*plain, decimal))
    return DisguisedNumber{sign + *plain, why.empty() ? "separators between thousands" : why};
  const char other = decimal == '.' ? ',' : '.';
  if (data::parse_number(rest, other))
    return DisguisedNumber{sign + std::string(rest), std::string("the decimal mark '") + other + "'"};
  return std::nullopt;
}

std::vector<std::string> number_words(const WordCounts& words, char decimal,
                                      std::vector<std::string>* other) {
  std::map<double, std::pair<std::string_view, int64_t>> chosen;
  for (const auto& [word, count] : words) {
    const auto [place, is_new] = chosen.try_emplace(*data::parse_number(word, decimal), word, count);
    if (is_new) continue;
    auto& [best, best_count] = place->second;
    const bool is_better = count > best_count || (count == best_count && word.size() < best.size());
    other->emplace_back(is_better ? best : word);
    if (is_better) place->second = {word, count};
  }
  std::vector<std::string> result;
  for (const auto& [number, spelling] : chosen) result.emplace_back(spelling.first);
  return result;
}

std::optional<SimilarWords> similar_words(const WordCounts& words, char decimal) {
  std::optional<SimilarWords> similar;
  std::map<std::string, std::string_view> by_letters;
  std::map<double, std::string_view> by_number;
  const auto note = [&](std::string_view first, std::string_view second, const char* why) {
    if (similar)
      ++similar->more;
    else
      similar = {std::string(first), std::string(second), why};
  };
  for (const auto& [word, count] : words) {
    if (const auto [before, is_new] = by_letters.emplace(folded(word), word); !is_new) {
      note(before->second, word, "differ only in case or spaces");
    } else if (const auto number = data::parse_number(word, decimal)) {
      if (const auto [equal, is_first] = by_number.emplace(*number, word); !is_first)
        note(equal->second, word, "are equal numbers");
    }
  }
  return similar;
}

}  // namespace mox::internal
