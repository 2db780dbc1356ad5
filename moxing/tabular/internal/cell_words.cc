#include "moxing/tabular/internal/cell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "moxing/formats/csv_table.h"
#include "moxing/tabular/internal/letters.h"

namespace mox::internal {
namespace {

constexpr std::string_view kCurrencies[] = {"$", "€", "£", "¥", "EUR", "USD", "CHF"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

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

}  // namespace

std::optional<DisguisedNumber> disguised_number(std::string_view cell, char decimal) {
  if (data::parse_number(cell, decimal)) return std::nullopt;
  const std::string seen = as_seen(cell);
  std::string_view rest = seen;
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
    return DisguisedNumber{sign + std::string(rest),
                           why.empty() ? "spaces, or characters that nobody sees" : why};
  const char other = decimal == '.' ? ',' : '.';
  const std::string other_mark = std::string("the decimal mark '") + other + "'";
  if (why.empty()) why = "separators between thousands";
  if (auto plain = without_thousands(rest, decimal); plain && data::parse_number(*plain, decimal))
    return DisguisedNumber{sign + *plain, why};
  if (data::parse_number(rest, other)) return DisguisedNumber{sign + std::string(rest), other_mark};
  // 1.234.567, where one such mark alone is that of the decimals; and 1.234,5.
  if (auto plain = without_thousands(rest, other); plain && data::parse_number(*plain, other))
    return DisguisedNumber{sign + *plain, plain->find(other) == plain->npos ? why : other_mark};
  return std::nullopt;
}

bool has_leading_zeros(std::string_view number) {
  return number.size() > 1 && number[0] == '0' && std::ranges::all_of(number, is_digit);
}

std::string exact_digits(std::string_view number, char decimal) {
  constexpr double kAllApart = 9007199254740992;  // 2^53
  const auto value = data::parse_number(number, decimal);
  if (!value || std::fabs(*value) < kAllApart) return "";
  int64_t exponent = 0;  // of ten, of the last digit
  bool behind_mark = false;
  std::string digits;
  for (size_t i = 0; i < number.size(); ++i) {
    const char letter = number[i];
    if (letter == 'e' || letter == 'E') {
      std::string_view rest = number.substr(i + 1);
      if (rest.starts_with('+')) rest.remove_prefix(1);
      int64_t given = 0;
      std::from_chars(rest.data(), rest.data() + rest.size(), given);
      exponent += given;
      break;
    }
    if (letter == decimal) behind_mark = true;
    if (!is_digit(letter) || (letter == '0' && digits.empty() && !behind_mark)) continue;
    digits += letter;
    exponent -= behind_mark ? 1 : 0;
  }
  // At once: there may be half a million of them, in each of many cells.
  digits.erase(0, digits.find_first_not_of('0'));
  while (digits.ends_with('0')) {
    digits.pop_back();
    ++exponent;
  }
  return fmt::format("{:06}.{}", exponent + std::ssize(digits), digits);
}

namespace {

struct NumberOfWord {
  double number;
  uint32_t word;
};

// In the order of the numbers, and of the words where these are equal.
void sort_numbers(const WordCounts& words, char decimal, std::vector<NumberOfWord>& numbers) {
  std::ranges::sort(numbers, [&](const NumberOfWord& a, const NumberOfWord& b) {
    if (a.number != b.number) return a.number < b.number;
    const std::string exact_a = exact_digits(words.word(a.word), decimal);
    const std::string exact_b = exact_digits(words.word(b.word), decimal);
    return exact_a != exact_b ? exact_a < exact_b : a.word < b.word;
  });
}

bool are_equal(const WordCounts& words, char decimal, const NumberOfWord& a, const NumberOfWord& b) {
  return a.number == b.number &&
         exact_digits(words.word(a.word), decimal) == exact_digits(words.word(b.word), decimal);
}

// The word that the first two of several are, in the order of the words; and how many more there are.
class FirstSimilar {
 public:
  explicit FirstSimilar(const WordCounts& words) : words_(words) {}
  void note(uint32_t first, uint32_t second, const char* why) {
    ++count_;
    if (count_ > 1 && second > second_) return;
    first_ = first;
    second_ = second;
    why_ = why;
  }
  std::optional<SimilarWords> result() const {
    if (count_ == 0) return std::nullopt;
    return SimilarWords{spelled_out(words_.word(first_)), spelled_out(words_.word(second_)), why_,
                        count_ - 1};
  }

 private:
  const WordCounts& words_;
  size_t count_ = 0;
  uint32_t first_ = 0, second_ = 0;
  const char* why_ = "";
};

// Of each word the first one of the same letters.
std::vector<uint32_t> first_of_letters(const WordCounts& words) {
  data::TextList letters;
  size_t bytes = 0;
  for (size_t i = 0; i < words.size(); ++i) bytes += words.word(i).size();
  letters.reserve(words.size(), bytes);
  for (size_t i = 0; i < words.size(); ++i) letters.add(folded(words.word(i)));
  std::vector<uint32_t> sorted(words.size()), first(words.size());
  std::iota(sorted.begin(), sorted.end(), uint32_t{0});
  std::ranges::sort(
      sorted, [&](uint32_t a, uint32_t b) { return std::pair(letters[a], a) < std::pair(letters[b], b); });
  for (size_t i = 0; i < sorted.size(); ++i) {
    const bool is_alike = i > 0 && letters[sorted[i]] == letters[sorted[i - 1]];
    first[sorted[i]] = is_alike ? first[sorted[i - 1]] : sorted[i];
  }
  return first;
}

}  // namespace

std::vector<std::string> number_words(const WordCounts& words, char decimal,
                                      std::vector<std::string>* other) {
  std::vector<NumberOfWord> numbers;
  numbers.reserve(words.size());
  for (uint32_t i = 0; i < words.size(); ++i)
    numbers.push_back({*data::parse_number(words.word(i), decimal), i});
  sort_numbers(words, decimal, numbers);
  std::vector<uint32_t> chosen, left;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint32_t word = numbers[i].word;
    if (i == 0 || !are_equal(words, decimal, numbers[i], numbers[i - 1])) {
      chosen.push_back(word);
      continue;
    }
    uint32_t& best = chosen.back();
    const bool is_better =
        words.rows(word) > words.rows(best) ||
        (words.rows(word) == words.rows(best) && words.word(word).size() < words.word(best).size());
    left.push_back(is_better ? best : word);
    if (is_better) best = word;
  }
  numbers = {};
  std::vector<std::string> result;
  result.reserve(chosen.size());
  for (const uint32_t word : chosen) result.emplace_back(words.word(word));
  std::ranges::sort(left);
  other->reserve(left.size());
  for (const uint32_t word : left) other->emplace_back(words.word(word));
  return result;
}

std::optional<SimilarWords> similar_words(const WordCounts& words, char decimal) {
  FirstSimilar similar(words);
  const std::vector<uint32_t> first = first_of_letters(words);
  std::vector<NumberOfWord> numbers;
  for (uint32_t i = 0; i < first.size(); ++i) {
    if (first[i] != i) {
      const bool look_the_same = as_seen(words.word(first[i])) == as_seen(words.word(i));
      similar.note(first[i], i, look_the_same ? "look the same" : "differ only in case or spaces");
    } else if (const auto number = data::parse_number(words.word(i), decimal)) {
      if (numbers.empty()) numbers.reserve(words.size() - i);
      numbers.push_back({*number, i});
    }
  }
  sort_numbers(words, decimal, numbers);
  uint32_t equal = 0;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (i == 0 || !are_equal(words, decimal, numbers[i], numbers[i - 1]))
      equal = numbers[i].word;
    else
      similar.note(equal, numbers[i].word, "are equal numbers");
  return similar.result();
}

}  // namespace mox::internal
