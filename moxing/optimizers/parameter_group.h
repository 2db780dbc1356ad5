// Parameter groups: rules that give some variables another learning rate or weight decay.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/shape.h"

namespace mox {

struct ParameterGroup {
  std::string name = {};  // for messages and the log
  // Whether a variable belongs to the group; called once a variable, when the model is compiled.
  std::function<bool(std::string_view variable, const Shape& shape)> matches = {};
  double learning_rate_multiplier = 1;      // >= 0; 0: no gradient is computed
  std::optional<double> weight_decay = {};  // replaces the optimizer's weight decay; >= 0
};

// What holds for one variable.
struct ParameterSettings {
  std::string group;  // empty if no group matches
  double learning_rate_multiplier = 1;
  double weight_decay = 0;
};

// No weight decay on biases and on the scales and offsets of normalisation: all variables of rank <= 1.
ParameterGroup no_weight_decay_on_vectors();

// The groups an optimizer has unless told otherwise: { no_weight_decay_on_vectors() }.
std::vector<ParameterGroup> default_parameter_groups();

// Throws InvalidArgument for a group without a predicate or with a negative or non-finite number.
void validate_parameter_groups(const std::vector<ParameterGroup>& groups);

// The first group that matches decides; a variable that no group takes has multiplier 1 and `weight_decay`.
ParameterSettings resolve_parameter_settings(const std::vector<ParameterGroup>& groups, double weight_decay,
                                             std::string_view variable, const Shape& shape);

}  // namespace mox
