// How many samples the replicas of all ranks have in a step. No rank knows more than its own when it begins.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace mox::internal {

class SampleCount {
 public:
  explicit SampleCount(Communicator& ranks) : ranks_(ranks) {}

  // Tells the others that this rank has `own`. `known` gets the number of all as soon as it is there: at once
  // if there is one rank, else on the thread that drives the communicator. All ranks call it together.
  void begin_step(int64_t own, const std::function<void(int64_t all)>& known);
  // Until it is there.
  void wait();
  int64_t all() const { return all_; }

 private:
  Communicator& ranks_;
  int64_t own_ = 0, all_ = 0;
  std::vector<std::string> told_;  // what each rank has sent
  std::shared_ptr<Communicator::Pending> telling_;
};

}  // namespace mox::internal
