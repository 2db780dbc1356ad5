#include "moxing/tabular/internal/column_warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
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
