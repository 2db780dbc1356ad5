// What an operation of a data set keeps, as its part of the budget of all pipelines.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/data/internal/leaf.h"
#include "runtime/data/memory_budget.h"

namespace mox::data::internal {

// Lives as long as what it stands for. One thread at a time.
class Charge {
 public:
  // For messages: `label` names the operation and its place, `what` is what it keeps ("the cache"), `advice`
  // what one may do instead of raising the budget.
  Charge(std::shared_ptr<MemoryBudget> budget, std::string label, std::string what, std::string advice);

  // Throws FailedPrecondition, and takes nothing, where the budget of all that is kept would be exceeded.
  void add(size_t bytes);
  // For what one may do without: takes nothing, and gives false, where less than a quarter of the budget
  // would be left for what has to fit.
  bool try_to_grow(size_t bytes) { return share_.try_to_grow(bytes); }
  void give_back(size_t bytes);

 private:
  std::shared_ptr<MemoryBudget> budget_;
  MemoryBudget::Share share_;
  std::string label_, what_, advice_;
};

// What is kept for a leaf: its place, and its value if it has one.
size_t bytes_of(const Leaf& leaf);
size_t bytes_of(const Payload& payload);

}  // namespace mox::data::internal
