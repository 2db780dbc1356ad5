#include "moxing/engine/step/update_gate.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace mox::internal {

UpdateGate::UpdateGate(VariableScheme& scheme, LaneThreads& lanes, const Team& team, bool delivers_by_lanes)
    : scheme_(scheme), lanes_(lanes), team_(team), delivering_team_(delivers_by_lanes ? team : Team(1)) {}

void UpdateGate::begin_step(const Targets& targets) {
  targets_ = &targets;
  sums_.assign(targets.parameters.size(), {});
  elements_left_ = targets.elements;
  is_open_ = left_out_ = false;
  takes_after_step_ = !rule_ && !scheme_.updater().may_leave_out();
}

void UpdateGate::open(double scale) {
  scale_ = scale;
  is_open_ = true;
  for (const SumRange& range : std::exchange(waiting_gradients_, {})) apply(range);
  for (const SumRange& range : std::exchange(waiting_after_step_, {})) take_after_step_value(range);
}

bool UpdateGate::applies_together() const {
  return rule_ || scheme_.updater().needs_all_gradients() || !scheme_.applies_at_once();
}

void UpdateGate::take_gradient(SumRange range) {
  if (applies_together() || !scheme_.updater().takes_parts()) {
    const int64_t elements = targets_->elements[range.index];
    sums_[range.index] = {range.sum.data() - range.first, static_cast<size_t>(elements)};
    elements_left_[range.index] -= range.sum.size();
    if (applies_together() || elements_left_[range.index] > 0) return;
    range = {range.index, 0, sums_[range.index]};
  }
  if (is_open_) {
    apply(range);
  } else {
    waiting_gradients_.push_back(range);
  }
}

void UpdateGate::apply(const SumRange& range) {
  ParameterUpdater& updater = scheme_.updater();
  const size_t parameter = targets_->parameters[range.index];
  if (std::ssize(range.sum) == targets_->elements[range.index])
    return updater.apply(parameter, range.sum, scale_, delivering_team_);
  updater.apply_part(parameter, range.first, range.sum, scale_);
}

void UpdateGate::take_after_step_value(const SumRange& range) {
  if (!is_open_ || !takes_after_step_) {
    waiting_after_step_.push_back(range);
    return;
  }
  const double scale = scale_;  // rounded once: what all replicas agree on is their mean
  Array variable = scheme_.host(targets_->after_step[range.index]);
  std::ranges::transform(range.sum, variable.values<float>().begin() + range.first,
                         [scale](float value) { return static_cast<float>(value * scale); });
}

void UpdateGate::finish_gradients() {
  if (!applies_together()) return;
  ParameterUpdater& updater = scheme_.updater();
  // With a server it alone has the sums, unless all look whether the step counts.
  if (!scheme_.applies_here() && !updater.may_leave_out()) return;
  std::optional<double> scale = scale_;
  if (updater.needs_all_gradients())
    // A rule gets the gradient itself: clipping is the optimizer's.
    scale = updater.common_scale(std::vector<std::span<const float>>(sums_.begin(), sums_.end()), scale_,
                                 /*clips=*/!rule_);
  left_out_ = !scale;
  if (left_out_ || !scheme_.applies_here()) return;
  if (rule_) {
    updater.pass_over_step();
    return rule_(sums_, *scale);
  }
  scheme_.apply_all(targets_->parameters, sums_, *scale, lanes_, team_);
}

void UpdateGate::finish_after_step_values() {
  const auto waiting = std::exchange(waiting_after_step_, {});
  takes_after_step_ = true;
  if (left_out_) return;
  for (const SumRange& range : waiting) take_after_step_value(range);
}

}  // namespace mox::internal
