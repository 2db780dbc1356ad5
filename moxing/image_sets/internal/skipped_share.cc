#include "moxing/image_sets/internal/skipped_share.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/error.h"

namespace mox::data::internal {

SkippedShare::SkippedShare(int64_t samples, std::vector<int64_t> class_sizes,
                           std::vector<std::string> class_names, double limit)
    : samples_(samples),
      sizes_(std::move(class_sizes)),
      names_(std::move(class_names)),
      limit_(limit),
      met_(samples) {}

bool SkippedShare::add_good(int64_t index, int64_t number) {
  if (!sizes_.empty()) return false;
  const std::lock_guard lock(mutex_);
  if (!is_new(index)) return false;
  ++counts_[number].good;
  if (number_met_ == samples_) judge_all();
  return true;
}

void SkippedShare::add_bad(int64_t index, std::span<const int32_t> numbers, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  const bool is_news = is_new(index);
  for (const int32_t number : numbers) {
    if (number < 0) continue;
    Count& count = counts_[number];
    if (is_news && count.bad++ == 0) count.first_reason = reason;
  }
  for (const int32_t number : numbers)
    if (number >= 0) judge(number);
  if (sizes_.empty() && number_met_ == samples_) judge_all();
}

bool SkippedShare::is_new(int64_t index) {
  const size_t at = index;
  if (met_[at]) return false;
  met_[at] = true;
  ++number_met_;
  return true;
}

void SkippedShare::judge(int64_t number) const {
  const Count& count = counts_.at(number);
  const bool is_known = static_cast<size_t>(number) < sizes_.size();
  if (!is_known && number_met_ < samples_ && count.bad < kTelling) return;
  const int64_t size = is_known ? sizes_[number] : count.good + count.bad;
  if (count.bad <= limit_ * size) return;
  const size_t at = number;
  const std::string name = at < names_.size() ? "'" + names_[at] + "'" : std::to_string(number);
  throw DataError(fmt::format(
      "{} of the {} images of class {} that were {} cannot be read, more than the share {:g} that may be "
      "skipped (max_bad_share, for the image classifier data.max_bad_share): the class would go unlearnt. "
      "The first: {}",
      count.bad, size, name, is_known ? "found" : "read so far", limit_, count.first_reason));
}

void SkippedShare::judge_all() const {
  for (const auto& [number, count] : counts_)
    if (count.bad > 0) judge(number);
}

}  // namespace mox::data::internal
