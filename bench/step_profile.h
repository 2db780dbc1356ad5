// Where the time of a training step goes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "moxing/model/model_spec.h"
#include "moxing/optimizers/optimizer.h"
#include "ops/fusion/default_rules.h"
#include "runtime/data/dataset.h"
#include "runtime/exec/plan_instance.h"

namespace bench {

struct ProfileOptions {
  int64_t batch_size = 32;
  int64_t warm_up_steps = 10;
  int64_t steps = 100;
  int threads = 1;       // of the compute team
  int data_threads = 1;  // of the pipeline, beside them
  uint64_t seed = 1;
  mox::RuleOptions rules = {};
};

// Seconds are those of one step, as means over the timed ones.
struct StepProfile {
  std::vector<mox::KernelTime> kernels;                 // of the plan, in its order
  std::vector<std::pair<std::string, double>> updates;  // of each variable by the optimizer
  double waiting = 0;                                   // for a batch
  double total = 0;
  mox::PlanStatistics plan;
  std::string plan_text, kernel_text;  // tables for people

  double kernel_seconds() const;
  double update_seconds() const;
  // What is neither a kernel of the plan nor an update of a variable.
  double overhead() const { return total - kernel_seconds() - update_seconds(); }
};

// Trains on `data` (samples, not batched) as mox::run does, but with a clock around each kernel of the plan,
// each update of a variable and each wait for a batch. The clocks cost about 0.05 µs a kernel.
StepProfile profile_steps(const mox::ModelFn& model_fn, const mox::OptimizerFn& optimizer_fn,
                          const mox::Dataset& data, const ProfileOptions& options);

// The plan, its kernels, then the parts of a step.
std::string describe(const StepProfile& profile, const ProfileOptions& options);

}  // namespace bench
