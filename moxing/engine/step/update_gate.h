// What a step does with the sums that have been delivered to it, on their way from the reduction
// to the variables.
//
// The sum of a gradient waits until it is known over how many samples it is (`open`). Then it is applied: at
// once, in parts or whole, as the optimizer takes it; or, where something needs all gradients of the step
// (clipping by the global norm, loss scaling, a rule in place of the optimizer, a scheme that does not apply
// at once), together with all others (`finish_gradients`). The sum of an after-step value waits likewise, and
// besides until it is certain that the step counts, and until a rule has done with the step's batch.
//
// Threads: `open` and the takes by the thread that delivers, before and after the lanes run by the calling
// one. Several lanes deliver at once only where one process has all replicas: the gate is open from the
// beginning then, and each takes elements of its own. All else by the calling one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "moxing/engine/step/variable_scheme.h"

namespace mox::internal {

// Elements from `first` on of the sum of a gradient or of an after-step value.
struct SumRange {
  size_t index = 0;
  int64_t first = 0;
  std::span<float> sum;
};

class UpdateGate {
 public:
  // What the sums of a model's steps change.
  struct Targets {
    std::vector<size_t> parameters;       // of each gradient: its number in the updaters
    std::vector<int64_t> elements;        // of each gradient
    std::vector<std::string> after_step;  // of each after-step value: its variable
  };
  // Applies all gradients of a step, which still lack the factor `scale`.
  using ApplyAll = std::function<void(std::span<const std::span<float>> gradients, double scale)>;

  // `delivers_by_lanes`: and not by the communication thread, which has no team of its own.
  UpdateGate(VariableScheme& scheme, LaneThreads& lanes, const Team& team, bool delivers_by_lanes);

  // From the next step on, in place of the optimizer.
  void set_rule(ApplyAll rule) { rule_ = std::move(rule); }

  // `targets`: as they are until the step's end.
  void begin_step(const Targets& targets);
  // `scale` makes a sum over replicas a mean over samples.
  void open(double scale);
  void take_gradient(SumRange range);
  void take_after_step_value(const SumRange& range);
  // When all gradients have been taken. Throws what ParameterUpdater::common_scale and the rule throw.
  void finish_gradients();
  // When all after-step values have been taken, after finish_gradients.
  void finish_after_step_values();

  // Whether the step was left out (loss_scale.h): no variable has changed.
  bool left_out() const { return left_out_; }

 private:
  bool applies_together() const;
  void apply(const SumRange& range);

  VariableScheme& scheme_;
  LaneThreads& lanes_;
  const Team& team_;
  const Team delivering_team_;
  ApplyAll rule_;
  const Targets* targets_ = nullptr;
  bool left_out_ = false, is_open_ = false;
  // The step is certain not to be left out, and no rule will ask for the loss of its batch again.
  bool takes_after_step_ = false;
  double scale_ = 1;
  std::vector<SumRange> waiting_gradients_, waiting_after_step_;
  // Of all gradients, where updates wait for their last element or for the last of them:
  std::vector<std::span<float>> sums_;
  std::vector<int64_t> elements_left_;
};

}  // namespace mox::internal
