// Which checkpoints of a training are kept for good, by seconds and by passes over the training data; those
// at multiples of steps, whichever run saved them, CheckpointRetention keeps.
#pragma once

#include <chrono>

#include "moxing/hooks/interval.h"

namespace mox::internal {

class KeptForGood {
 public:
  // Throws FailedPrecondition for an interval in epochs where `steps_per_epoch` is not known (0).
  KeptForGood(const Interval& interval, double steps_per_epoch);

  // Whether the checkpoint that is saved now, after so many passes, is kept: the first one after each such
  // number of them, and the first one so many seconds after the last that time has kept, or after the start
  // of the run. `passes_before`: of the checkpoint before; 0 if there is none.
  bool keeps(double passes, double passes_before);

 private:
  using Clock = std::chrono::steady_clock;

  Interval interval_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace mox::internal
