// Whether batches are worth handing over from other threads, by the time in which they are made in `next`.
// Scheduling only: neither order nor bits depend on what is measured here.
#pragma once

#include <algorithm>

namespace mox::data::internal {

class HandingOverTrial {
 public:
  // After each batch that was made in `next`: whether handing over is worth it, as soon as that is known.
  bool made_in(double seconds) {
    cheapest_ = batches_ == 0 ? seconds : std::min(cheapest_, seconds);
    seconds_ = batches_ == 0 ? seconds : seconds_ + seconds;
    ++batches_;
    const bool long_ones = batches_ >= kLongBatches && cheapest_ >= kWorthSplitting;
    if (!long_ones && (batches_ < kBatches || seconds_ < kSeconds)) return false;
    batches_ = 0;
    return cheapest_ >= kWorthHandingOver;
  }
  bool is_worth_splitting() const { return cheapest_ >= kWorthSplitting; }

 private:
  // A hand-over between two threads costs some microseconds of both; batches made in less than this are made
  // in `next`.
  static constexpr double kWorthHandingOver = 20e-6;
  // From here on the samples of one batch are spread over the threads, so that the first batch comes soon and
  // few batches in flight keep all threads busy.
  static constexpr double kWorthSplitting = 2e-3;
  // The decision looks at the cheapest of so many batches in a row, over so much time: the first ones meet
  // cold caches and fresh memory, and any may be interrupted. Two suffice where each takes long.
  static constexpr int kBatches = 4, kLongBatches = 2;
  static constexpr double kSeconds = 0.4e-3;

  double cheapest_ = 0, seconds_ = 0;
  int batches_ = 0;
};

}  // namespace mox::data::internal
