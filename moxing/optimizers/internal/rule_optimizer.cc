#include "moxing/optimizers/internal/rule_optimizer.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace mox::internal {

RuleOptimizer::RuleOptimizer(std::string_view name, const OptimizerOptions& options, std::string settings)
    : name_(name),
      learning_rate_(options.learning_rate),
      weight_decay_(options.weight_decay),
      groups_(options.parameter_groups),
      overrides_(options.parameter_overrides),
      settings_(std::move(settings)) {}

std::string RuleOptimizer::description() const {
  std::string text = fmt::format("{}: learning rate {}", name_, learning_rate_.description());
  if (weight_decay_ != 0) text += fmt::format(", weight decay {}", weight_decay_);
  for (const ParameterGroup& group : groups_) {
    text += fmt::format(", group \"{}\" (", group.name);
    text += fmt::format("learning rate x {}", group.learning_rate_multiplier);
    if (group.weight_decay) text += fmt::format(", weight decay {}", *group.weight_decay);
    text += ")";
  }
  for (const ParameterOverride& override : overrides_) {
    text += fmt::format(", pattern \"{}\" (", override.pattern);
    if (override.learning_rate_multiplier)
      text += fmt::format("learning rate x {}", *override.learning_rate_multiplier);
    if (override.weight_decay)
      text += fmt::format("{}weight decay {}", override.learning_rate_multiplier ? ", " : "",
                          *override.weight_decay);
    text += ")";
  }
  if (!settings_.empty()) text += ", " + settings_;
  return text;
}

double RuleOptimizer::learning_rate(int64_t step, double steps_per_epoch) const {
  const double rate = learning_rate_.value(step, steps_per_epoch);
  if (!(rate >= 0))
    throw InvalidArgument(
        fmt::format("the learning rate must not be negative, but the schedule \"{}\" gives {} at step {}",
                    learning_rate_.description(), rate, step));
  return rate;
}

ParameterSettings RuleOptimizer::parameter_settings(std::string_view variable, const Shape& shape) const {
  return resolve_parameter_settings(groups_, weight_decay_, variable, shape, overrides_);
}

void RuleOptimizer::check_variables(std::span<const TrainableVariable> variables) const {
  require_members(groups_, overrides_, variables);
}

}  // namespace mox::internal
