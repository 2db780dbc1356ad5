// How many batches of a pipeline are under way or ready at a time, and what they take of its memory budget.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/data/memory_budget.h"

namespace mox::data::internal {

class BatchesInFlight {
 public:
  // Batches that take `bytes` each, of which `ready` may wait for the consumer.
  BatchesInFlight(std::shared_ptr<MemoryBudget> budget, size_t bytes, int64_t ready)
      : budget_(std::move(budget)), bytes_(bytes), ready_(ready) {}

  // That the budget has room for.
  int64_t affordable() const {
    const size_t room = budget_->room_for_batches(taken_.bytes());
    return std::min<size_t>(room / std::max<size_t>(bytes_, 1), kMost);
  }
  // With so many threads; at least one.
  int with(int threads) const {
    return static_cast<int>(std::clamp<int64_t>(std::min(ready_ + threads, affordable()), 1, kMost));
  }
  // Takes the memory of with(threads), which is limit() from then on.
  void take_for(int threads) {
    limit_ = with(threads);
    taken_.resize(limit_ * bytes_);
  }

  int limit() const { return limit_; }

 private:
  static constexpr int64_t kMost = 1 << 20;

  std::shared_ptr<MemoryBudget> budget_;
  MemoryBudget::Share taken_{budget_, MemoryBudget::Share::Of::kBatches};
  const size_t bytes_;
  const int64_t ready_;
  int limit_ = 1;
};

}  // namespace mox::data::internal
