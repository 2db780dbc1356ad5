#include "moxing/optimizers/parameter_group.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/base/error.h"

namespace mox {

ParameterGroup no_weight_decay_on_vectors() {
  return {.name = "vectors",
          .matches = [](std::string_view, const Shape& shape) { return shape.rank() <= 1; },
          .learning_rate_multiplier = 1,
          .weight_decay = 0.0};
}

std::vector<ParameterGroup> default_parameter_groups() { return {no_weight_decay_on_vectors()}; }

void validate_parameter_groups(const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& group : groups) {
    if (!group.matches)
      throw InvalidArgument(fmt::format(
          "parameter group \"{}\" has no predicate: set .matches to say which variables belong to it",
          group.name));
    const auto check = [&](const char* field, double value) {
      if (!(value >= 0 && std::isfinite(value)))
        throw InvalidArgument(fmt::format("parameter group \"{}\": {} must be a finite number >= 0, got {}",
                                          group.name, field, value));
    };
    check("learning_rate_multiplier", group.learning_rate_multiplier);
    if (group.weight_decay) check("weight_decay", *group.weight_decay);
  }
}

ParameterSettings resolve_parameter_settings(const std::vector<ParameterGroup>& groups, double weight_decay,
                                             std::string_view variable, const Shape& shape) {
  for (const ParameterGroup& group : groups)
    if (group.matches(variable, shape))
      return {group.name, group.learning_rate_multiplier, group.weight_decay.value_or(weight_decay)};
  return {"", 1.0, weight_decay};
}

}  // namespace mox
