#include "moxing/tabular/internal/column_warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "moxing/job/distributed.h"
#include "moxing/tabular/internal/cell_words.h"
#include "moxing/tabular/internal/letters.h"
#include "runtime/base/log.h"

namespace mox::internal {

void warn_of_similar(const data::CsvTable& table, std::string_view column, const WordCounts& words,
                     char decimal, std::string_view what) {
  const auto similar = similar_words(words, decimal);
  if (!similar || rank() != 0) return;
  log_warning(fmt::format(
      "'{}', column '{}': '{}' and '{}' {}{}, and are different {} to the model; write them alike if "
      "they mean the same",
      table.path(), column, similar->first, similar->second, similar->why,
      similar->more > 0 ? fmt::format(" (as {} more do)", similar->more) : "", what));
}

namespace {

// What a warning names of words, of which there may be as many as rows: the first, and how many.
class FirstWords {
 public:
  void add(std::string_view word) {
    if (count_++ < kShown) shown_.push_back(spelled_out(word));
  }
  bool empty() const { return count_ == 0; }
  std::string text() const {
    const size_t more = count_ - shown_.size();
    return fmt::format("{}{}", fmt::join(shown_, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
  }

 private:
  static constexpr size_t kShown = 5;
  std::vector<std::string> shown_;
  size_t count_ = 0;
};

}  // namespace

void warn_of_mixed(const data::CsvTable& table, std::string_view column, const WordCounts& words,
                   char decimal, std::string_view what, std::string_view way_out) {
  if (rank() != 0) return;
  FirstWords numbers, others;
  for (size_t i = 0; i < words.size(); ++i)
    (data::parse_number(words.word(i), decimal) ? numbers : others).add(words.word(i));
  if (numbers.empty() || others.empty()) return;
  log_warning(fmt::format(
      "'{}', column '{}': of its {} {} some are numbers ({}) and some are not ({}), and each is one of its own "
      "to the model; write them alike where a number and a word mean the same{}",
      table.path(), column, words.size(), what, numbers.text(), others.text(), way_out));
}

namespace {

bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

// The digits at the beginning of a text, with a decimal mark and what follows it.
std::string_view leading_number(std::string_view text, char decimal) {
  size_t end = 0;
  while (end < text.size() && is_decimal_digit(text[end])) ++end;
  if (end + 1 < text.size() && text[end] == decimal && is_decimal_digit(text[end + 1]))
    for (++end; end < text.size() && is_decimal_digit(text[end]);) ++end;
  return text.substr(0, end);
}

// "# km" of "-12.5 km" and "7 km", and the first number in it; without a number "".
struct NumberInWord {
  std::string form;
  std::string_view first;
};
NumberInWord number_in(std::string_view word, char decimal) {
  NumberInWord found;
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  while (!word.empty()) {
    if (!is_decimal_digit(word[0])) {
      found.form += word[0];
      word.remove_prefix(1);
      continue;
    }
    const std::string_view number = leading_number(word, decimal);
    if (found.first.empty()) found.first = number;
    found.form += '#';
    word.remove_prefix(number.size());
  }
  if (found.first.empty()) found.form.clear();
  return found;
}

// Digits as they stand where a mark is between thousands: 999, or 1.234.
enum class Thousands { kNone, kBelow, kMarked };
Thousands thousands_in(std::string_view number, char mark) {
  if (number.starts_with('-') || number.starts_with('+')) number.remove_prefix(1);
  const size_t whole = std::min(number.find(mark), number.size());
  if (whole == 0 || whole > 3 || !std::ranges::all_of(number.substr(0, whole), is_decimal_digit))
    return Thousands::kNone;
  const bool begins_with_zero = number[0] == '0';
  if (whole == number.size()) return begins_with_zero && whole > 1 ? Thousands::kNone : Thousands::kBelow;
  const std::string_view behind = number.substr(whole + 1);
  const bool are_three = behind.size() == 3 && std::ranges::all_of(behind, is_decimal_digit);
  return are_three && !begins_with_zero ? Thousands::kMarked : Thousands::kNone;
}

}  // namespace

void warn_of_numbers_in_words(const data::CsvTable& table, std::string_view column, const WordCounts& words,
                              char decimal) {
  constexpr int64_t kTelling = 10;  // fewer may well be the names of things
  // The form of more than half of the rows, if there is one, is what is left of votes against each other
  // (Boyer and Moore, MJRTY, 1991): a table of the words' forms may be many times as large as the column.
  std::string most;
  int64_t rows = 0, votes = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    rows += words.rows(i);
    std::string form = number_in(words.word(i), decimal).form;
    if (votes == 0)
      most = std::move(form), votes = words.rows(i);
    else if (form == most)
      votes += words.rows(i);
    else if ((votes -= words.rows(i)) < 0)
      most = std::move(form), votes = -votes;
  }
  if (most.empty() || most == "#" || rank() != 0) return;
  int64_t of_form = 0, rows_of_form = 0;
  size_t first = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (number_in(words.word(i), decimal).form != most) continue;
    if (of_form++ == 0) first = i;
    rows_of_form += words.rows(i);
  }
  if (of_form < kTelling || rows_of_form * 2 <= rows) return;
  const std::string_view word = words.word(first);
  log_warning(fmt::format(
      "'{}', column '{}': {} of its {} values are numbers within the same letters, as '{}' is, and each of the "
      "{} different ones is a category of its own to the model, which does not see how large they are. Where "
      "that counts write plain numbers ({}; of a date the days since another one); of names of things say that "
      "they are categories (categories), or leave the column out (ignored)",
      table.path(), column, rows_of_form, rows, spelled_out(word), of_form, number_in(word, decimal).first));
}

void warn_of_thousands(const data::CsvTable& table, size_t column, char decimal, std::string_view way_out) {
  int64_t marked = 0, below = 0, first = 0;
  for (int64_t row = 0; row < table.rows(); ++row) {
    const std::string_view cell = table.cell(row, column);
    const Thousands found = thousands_in(cell, decimal);
    if (found == Thousands::kNone) {
      if (data::parse_number(cell, decimal)) return;
      continue;  // missing
    }
    if (found == Thousands::kMarked && ++marked == 1) first = row;
    below += found == Thousands::kBelow;
  }
  if (marked == 0 || below == 0 || rank() != 0) return;
  std::string plain(table.cell(first, column));
  std::erase(plain, decimal);
  log_warning(fmt::format(
      "{}: '{}' is read as a number near {}, and not as {}: {} of the column's numbers have '{}' and three digits "
      "behind it, the other {} are whole ones below 1000, as where '{}' stands between thousands. If it does write "
      "plain numbers{}",
      table.place(first, column), table.cell(first, column),
      table.cell(first, column).substr(0, table.cell(first, column).find(decimal)), plain, marked, decimal,
      below, decimal, way_out));
}

void warn_of_row_numbers(const data::CsvTable& table, size_t column, char decimal) {
  constexpr int64_t kTelling = 20;
  if (table.rows() < kTelling || rank() != 0) return;
  auto expected = data::parse_number(table.cell(0, column), decimal);
  for (int64_t row = 0; row < table.rows(); ++row) {
    if (!expected || data::parse_number(table.cell(row, column), decimal) != expected) return;
    if (*expected + 1 == *expected) return;  // beyond 2^53, where equal numbers would count
    ++*expected;
  }
  log_warning(fmt::format(
      "'{}', column '{}' counts the rows, from {} to {}: it is learnt from like any number, which tells of "
      "other rows nothing. If it only names them say so (id), or leave it out (ignored)",
      table.path(), table.columns()[column], table.cell(0, column), table.cell(table.rows() - 1, column)));
}

}  // namespace mox::internal
