// Parameter groups: rules that give some variables another learning rate or weight decay.
#pragma once

#include <functional>
#include <optional>
#include <span>
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
  bool may_be_empty = false;  // otherwise a model none of whose trainable variables belongs to it is refused
};

// What the configuration says of variables by their names (optimizer.groups): it goes before the groups, and
// what it does not say stays as they have it.
struct ParameterOverride {
  // Of the whole name: * stands for any letters, also none and '/', ? for one, [a-z] for one of these.
  std::string pattern = {};
  std::optional<double> learning_rate_multiplier = {};  // >= 0; 0: no gradient is computed
  std::optional<double> weight_decay = {};              // >= 0
};

// A variable of a model that a training may change.
struct TrainableVariable {
  std::string name;
  Shape shape;
};

// What holds for one variable.
struct ParameterSettings {
  std::string group;  // empty if no group matches
  double learning_rate_multiplier = 1;
  double weight_decay = 0;
};

// No weight decay on biases and on the scales and offsets of normalisation: all variables of rank <= 1.
ParameterGroup no_weight_decay_on_vectors();

// Its words are KEY=VALUE, separated by spaces, with the names of the fields: "pattern=*/bias
// weight_decay=0". Throws InvalidArgument for anything else, and where pattern or both of the
// others are missing.
ParameterOverride parse_parameter_override(std::string_view text);

// The groups an optimizer has unless told otherwise: { no_weight_decay_on_vectors() }.
std::vector<ParameterGroup> default_parameter_groups();

// Throws InvalidArgument for a group without a predicate or with a negative or non-finite number.
void validate_parameter_groups(const std::vector<ParameterGroup>& groups);
void validate_parameter_overrides(const std::vector<ParameterOverride>& overrides);

// Throws InvalidArgument for a group and for an override that would do nothing: none of `variables` belongs
// to it, or one before it takes all that do. It names some of them.
void require_members(const std::vector<ParameterGroup>& groups,
                     const std::vector<ParameterOverride>& overrides,
                     std::span<const TrainableVariable> variables);

// The first group that matches decides; a variable that no group takes has multiplier 1 and `weight_decay`.
// Then the first override that matches.
ParameterSettings resolve_parameter_settings(const std::vector<ParameterGroup>& groups, double weight_decay,
                                             std::string_view variable, const Shape& shape,
                                             const std::vector<ParameterOverride>& overrides = {});

}  // namespace mox
