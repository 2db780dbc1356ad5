// Where the time of a training step goes.
#pragma once

#include <string>

#include "bench/small_cases.h"
#include "runtime/data/dataset.h"

namespace bench {

struct ProfileOptions {
  int64_t batch_size = 32;
  int64_t warm_up_steps = 10;
  int64_t steps = 100;
  int threads = 1;       // of the compute team
  int data_threads = 1;  // of the pipeline, beside them
  uint64_t seed = 1;
};

// Trains `of` on `data` (samples, not batched) as mox::run does, but with a clock around each kernel of the plan, each
// update of a variable and each wait for a batch. Returns the plan, then a table for people. The clocks cost
// about 0.05 µs a kernel.
std::string profile_steps(const SmallCase& of, const mox::Dataset& data, const ProfileOptions& options);

}  // namespace bench
