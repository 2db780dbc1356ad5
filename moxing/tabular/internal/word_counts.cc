#include "moxing/tabular/internal/word_counts.h"

#include <algorithm>

namespace mox::internal {
namespace {

// So many rows are kept apart at least, before they are sorted into the words: each is found in them from
// then on.
constexpr size_t kFewUnknown = 256;

}  // namespace

void WordCounts::add(int64_t row) {
  const auto at = static_cast<uint32_t>(row);  // a table has no more rows
  const auto known =
      std::ranges::lower_bound(words_, cell(at), {}, [&](const Word& word) { return cell(word.row); });
  if (known != words_.end() && cell(known->row) == cell(at)) {
    ++known->count;
    return;
  }
  unknown_.push_back(at);
  if (unknown_.size() >= std::max(kFewUnknown, words_.size())) take_unknown();
}

void WordCounts::finish() {
  take_unknown();
  unknown_ = {};
  words_.shrink_to_fit();
}

void WordCounts::take_unknown() {
  const auto by_cell = [&](uint32_t row) { return cell(row); };
  std::ranges::sort(unknown_, {}, by_cell);
  const size_t known = words_.size();
  for (const uint32_t row : unknown_)
    if (words_.size() > known && cell(words_.back().row) == cell(row))
      ++words_.back().count;
    else
      words_.push_back({row, 1});
  unknown_.clear();
  std::ranges::inplace_merge(words_, words_.begin() + static_cast<std::ptrdiff_t>(known), {},
                             [&](const Word& word) { return cell(word.row); });
}

}  // namespace mox::internal
