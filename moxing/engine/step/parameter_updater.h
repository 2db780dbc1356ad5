// Applies the optimizer to the variables of a run, one gradient at a time, and owns the optimizer's slots.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "moxing/checkpoint/named_array.h"
#include "moxing/engine/step/loss_scale.h"
#include "moxing/engine/step/step_moment.h"
#include "moxing/optimizers/optimizer.h"
#include "runtime/base/team.h"

namespace mox::internal {

// What a run that goes on has of the optimizer.
struct KeptOptimizer {
  std::vector<NamedArray> slots = {};          // by "variable/slot"; others begin with their initial value
  int64_t updates = 0;                         // that the run has done
  std::map<std::string, int64_t> missed = {};  // ParameterUpdater::missed_updates
};

class ParameterUpdater {
 public:
  // The memory of a variable by its name.
  using VariableOf = std::function<Array(std::string_view)>;

  // With `loss_scale` the gradients are those of the scaled loss.
  ParameterUpdater(std::unique_ptr<Optimizer> optimizer, VariableOf variable, const KeptOptimizer& kept,
                   const Team& team, LossScale loss_scale = {});

  // Declares the variables that a plan has gradients of and returns their numbers, in the same order; may be
  // called again with other plans' lists. Throws InvalidArgument if a kept slot has another shape
  // than its variable.
  std::vector<size_t> declare(std::span<const std::string> variables);

  // True if `apply_part` may be called: the rule treats each element by itself.
  bool takes_parts() const;

  // True if all gradients must be there before the first update (clipping by the global norm, loss scaling).
  bool needs_all_gradients() const { return optimizer_->global_norm_limit() || loss_scale_.is_on(); }
  // True if a step may turn out to be one that is left out: nothing may be changed before
  // `common_scale` has answered.
  bool may_leave_out() const { return loss_scale_.may_leave_out(); }

  // Begins the update of a step; `left_out` of those before it were none (LossScale::skipped_steps).
  void begin_step(const StepMoment& moment, int64_t left_out);
  // In place of all updates of a step: something else has changed the variables.
  void pass_over_step();
  // Different parameters may be updated from different threads at the same time.
  void apply(size_t parameter, std::span<const float> gradient, double gradient_scale, const Team& team);
  // Elements [first, first + gradient.size()) of the parameter, on the calling thread; several parts may be
  // applied at once.
  void apply_part(size_t parameter, int64_t first, std::span<const float> gradient, double gradient_scale);
  // Fetches what `apply_part` will read into the calling core's cache.
  void expect_part(size_t parameter, int64_t first, int64_t count) const;
  // The factor of all gradients of a step: `gradient_scale`, which they still lack, times what loss scaling
  // and, if `clips`, clipping by the global norm ask for. None if the step is to be left out. Once a step, if
  // `needs_all_gradients`; throws what LossScale::accepts throws.
  std::optional<double> common_scale(std::span<const std::span<const float>> gradients, double gradient_scale,
                                     bool clips);
  const LossScale& loss_scale() const { return loss_scale_; }

  // The name of a declared variable with a NaN or an infinity, or null.
  const std::string* first_not_finite() const;

  const Optimizer& optimizer() const { return *optimizer_; }
  double learning_rate(int64_t step, double steps_per_epoch) const {
    return optimizer_->learning_rate(step, steps_per_epoch);
  }
  std::vector<NamedArray> slots() const;  // sharing the memory
  // Between steps, of which `global_step` are done: how many of the run's updates the slots of a variable
  // have not seen, by its name, where it is not 0. They began later, or it was frozen meanwhile.
  std::map<std::string, int64_t> missed_updates(int64_t global_step) const;

 private:
  static constexpr size_t kMostSlots = 4;  // of an optimizer whose updates are cut into parts

  struct Parameter {
    std::string name;
    Array value;
    std::vector<Array> slots;
    std::vector<std::span<float>> slot_spans;
    int64_t missed = 0;  // of the updates before its first step here, or before the run went on
    ParameterSettings settings;
  };

  // Missed by a variable that takes no part, since the run went on. A rule without slots counts all.
  int64_t missed_here(int64_t updates) const { return slot_specs_.empty() ? 0 : updates - kept_updates_; }
  // `value` and `slots` are the parameter's, or the same part of each.
  void update(const Parameter& parameter, std::span<float> value, std::span<const float> gradient,
              std::span<const std::span<float>> slots, double gradient_scale, const Team& team) const;

  int64_t kept_missed(const std::string& variable) const;

  std::unique_ptr<Optimizer> optimizer_;
  std::vector<SlotSpec> slot_specs_;
  VariableOf variable_;
  const Team& team_;
  std::map<std::string, Array, std::less<>> kept_slots_;
  const int64_t kept_updates_;
  std::map<std::string, int64_t> kept_missed_;
  std::map<std::string, size_t, std::less<>> numbers_;
  std::vector<Parameter> parameters_;
  size_t begun_ = 0;  // of these, the first ones: they have taken part in a step
  LossScale loss_scale_;
  double learning_rate_ = 0;
  int64_t update_number_ = 1;
};

}  // namespace mox::internal
