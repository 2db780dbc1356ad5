#include "runtime/data/memory_budget.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/resource_limits.h"

namespace mox {

MemoryBudget::MemoryBudget(size_t bytes, std::string origin, std::string option)
    : bytes_(bytes), origin_(std::move(origin)), option_(std::move(option)) {}

std::shared_ptr<MemoryBudget> MemoryBudget::of_process() {
  return std::make_shared<MemoryBudget>(available_memory() / 4,
                                        "a quarter of the memory that this process may have");
}

std::string MemoryBudget::describe() const {
  return origin_.empty() ? fmt::format("{} bytes", bytes_) : fmt::format("{} bytes ({})", bytes_, origin_);
}

size_t MemoryBudget::room_beside(size_t cached, size_t own_batches) const {
  const size_t under_way = under_way_.load();
  const size_t taken = cached + (under_way > own_batches ? under_way - own_batches : 0);
  return bytes_ > taken ? bytes_ - taken : 0;
}

size_t MemoryBudget::room_for_batches(size_t own_batches) const {
  return room_beside(cached_.load(), own_batches);
}

size_t MemoryBudget::room_to_grow() const { return room_to_grow_beside(cached_.load()); }

size_t MemoryBudget::room_to_grow_beside(size_t cached) const {
  const size_t room = room_beside(cached, 0), spare = bytes_ / 4;
  return room > spare ? room - spare : 0;
}

// Never more than there is for a moment: another cache would take that for an error.
bool MemoryBudget::Share::try_to_grow(size_t more) {
  for (size_t cached = budget_->cached_.load();;) {
    if (more > budget_->room_to_grow_beside(cached)) return false;
    if (budget_->cached_.compare_exchange_weak(cached, cached + more)) break;
  }
  taken_ += more;
  return true;
}

size_t MemoryBudget::Share::resize(size_t bytes) {
  std::atomic<size_t>& total = of_ == Of::kCache ? budget_->cached_ : budget_->under_way_;
  // Unsigned numbers wrap around, so that this gives back as well.
  const size_t change = bytes - std::exchange(taken_, bytes);
  return total.fetch_add(change) + change;
}

}  // namespace mox
