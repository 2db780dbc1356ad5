// PlanInstance: a plan bound to one device: its arena, its kernels' state, its result buffers. `run`
// allocates nothing.
//
// Threads: one thread at a time, which computes with the team that the plan was compiled for and has its own
// again afterwards.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/exec/plan.h"

namespace mox {

// Called by `run` as soon as gradient `index` (of PlanRequest::gradients) is final and no remaining kernel of
// the plan reads it or its variable: the variable may be updated at once and the gradient be overwritten,
// while the backward pass goes on.
using GradientListener = FunctionRef<void(size_t index)>;

// What profiling has found out about one instruction of a plan, as a mean over the profiled runs.
struct KernelTime {
  std::string op, implementation, name;
  bool is_conversion = false;  // only changes a layout
  double seconds = 0;
  double floating_point_operations = 0;
};

// Called by `run` instead of the GradientListener for the gradients of a plan that was compiled with
// `gradients_in_parts` and whose kernels can give parts; see PartListener. The elements of gradient `index`
// that it takes are final, and the same elements of its variable may be updated at once; `gradient(index)`
// does not exist.
class GradientPartListener {
 public:
  virtual ~GradientPartListener() = default;
  virtual void expect(size_t index, int64_t first, int64_t count) const = 0;
  virtual void take(size_t index, int64_t first, std::span<const float> values) const = 0;
};

struct StepInputs {
  std::span<const Array> components;  // the batch, of the types that the graph's inputs declare
  uint64_t seed = 0;
  int64_t step = 0;
};

class PlanInstance {
 public:
  // `variable(name)` gives the memory of a variable, which must stay where it is for the life
  // of the instance.
  PlanInstance(std::shared_ptr<const Plan> plan, const Team& team,
               const std::function<Array(std::string_view name)>& variable);
  ~PlanInstance();
  PlanInstance(const PlanInstance&) = delete;
  PlanInstance& operator=(const PlanInstance&) = delete;

  // Throws InvalidArgument if a component has another type than the plan was compiled for.
  void run(const StepInputs& inputs, const GradientListener& listener);
  void run(const StepInputs& inputs);
  // For plans compiled with `gradients_in_parts`, and only for those. `gradient(index)` is valid while
  // `listener` is called with that index, and not afterwards.
  void run(const StepInputs& inputs, const GradientListener& listener,
           const GradientPartListener& part_listener);

  // Valid until the next run. Fetches and gradients are in the order of the PlanRequest. A gradient that
  // comes in parts is an undefined array.
  const Array& fetched(size_t index) const;
  const Array& gradient(size_t index) const;
  // All gradients lie in one block, in the order of the PlanRequest, each at the next multiple of 16
  // elements: so neighbouring gradients travel together as they are. The gap behind a gradient is zero. Not
  // for plans compiled with `gradients_in_parts`, which have no block. Valid for the instance's life.
  std::span<float> gradient_block();
  // Where gradient `index` begins in the block.
  int64_t gradient_offset(size_t index) const;
  // The values that take_after_step_values would copy, and the variables that take them, in the order
  // of the PlanRequest.
  size_t after_step_count() const;
  const Array& after_step_value(size_t index) const;
  Array after_step_variable(size_t index) const;
  // Copies each of them into its variable (call when no reader of the variable is running).
  void take_after_step_values();

  // With profiling on, seconds per instruction of the plan are accumulated (in the order of Plan::describe).
  void set_profiling(bool on);
  // In the order of the instructions; all zero before a profiled run.
  std::vector<KernelTime> profile() const;
  std::string describe_profile() const;

 private:
  void run_instructions(const StepInputs& inputs, const GradientListener& listener,
                        const GradientPartListener* part_listener);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mox
