// Where in a training a step is: what it depends on beside its batch.
#pragma once

#include <cstdint>

namespace mox::internal {

struct StepMoment {
  uint64_t seed = 0;
  int64_t step = 0;  // done before this one
  double steps_per_epoch = 0;
  double learning_rate_multiplier = 1;
};

}  // namespace mox::internal
