#include "moxing/optimizers/parameter_group.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/base/error.h"

namespace mox {
namespace {

bool matches(const ParameterOverride& override, std::string_view variable) {
  return ::fnmatch(override.pattern.c_str(), std::string(variable).c_str(), 0) == 0;
}

void require_not_negative(const std::string& what, const char* field, double value) {
  if (!(value >= 0 && std::isfinite(value)))
    throw InvalidArgument(fmt::format("{}: {} must be a finite number >= 0, got {}", what, field, value));
}

std::string first_variables(std::span<const TrainableVariable> variables) {
  constexpr size_t kShown = 5;
  std::string names;
  for (size_t i = 0; i < std::min(kShown, variables.size()); ++i)
    names += (i == 0 ? "" : ", ") + variables[i].name;
  return variables.size() > kShown ? names + ", ..." : names;
}

// One of several, of which the first that takes a variable decides.
struct Rule {
  std::string what;  // for messages
  std::function<bool(const TrainableVariable&)> takes;
  bool may_be_idle = false;
};

// Each is to decide about one variable at least.
void require_members_of_each(const std::vector<Rule>& rules, std::span<const TrainableVariable> variables) {
  const auto decides = [&](const Rule& rule, const TrainableVariable& variable) {
    return &*std::ranges::find_if(rules, [&](const Rule& any) { return any.takes(variable); }) == &rule;
  };
  for (const Rule& rule : rules) {
    if (rule.may_be_idle) continue;
    const auto member = std::ranges::find_if(variables, rule.takes);
    if (member == variables.end())
      throw InvalidArgument(fmt::format(
          "{} matches none of the {} trainable variables ({}), so it would do nothing; correct or remove it",
          rule.what, variables.size(), first_variables(variables)));
    if (std::ranges::any_of(
            variables, [&](const auto& variable) { return rule.takes(variable) && decides(rule, variable); }))
      continue;
    const auto before = std::ranges::find_if(rules, [&](const Rule& any) { return any.takes(*member); });
    throw InvalidArgument(fmt::format(
        "{} would do nothing: of those that match a variable the first decides, and {}, which comes "
        "before, has '{}' and all others that it matches; put it first, or remove it",
        rule.what, before->what, member->name));
  }
}

}  // namespace

ParameterOverride parse_parameter_override(std::string_view text) {
  const auto fail = [&](std::string_view expected) {
    throw InvalidArgument(
        fmt::format("parameter group \"{}\": expected {}; the form is \"pattern=trunk/* "
                    "learning_rate_multiplier=0.1 weight_decay=0\"",
                    text, expected));
  };
  ParameterOverride result;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (word.empty()) continue;
    const size_t equal = std::min(word.find('='), word.size());
    const std::string_view key = word.substr(0, equal), value = word.substr(std::min(equal + 1, word.size()));
    std::optional<double>* number = key == "learning_rate_multiplier" ? &result.learning_rate_multiplier
                                    : key == "weight_decay"           ? &result.weight_decay
                                                                      : nullptr;
    if (value.empty() || (!number && key != "pattern"))
      fail(fmt::format("pattern, learning_rate_multiplier or weight_decay with '=' and a value, not '{}'",
                       word));
    if (number ? number->has_value() : !result.pattern.empty()) fail(fmt::format("{} once", key));
    if (!number) {
      result.pattern = value;
      continue;
    }
    double parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (error != std::errc() || end != value.data() + value.size())
      fail(fmt::format("a number after {}=, not '{}'", key, value));
    *number = parsed;
  }
  if (result.pattern.empty()) fail("pattern=NAME, which says what variables are meant");
  if (!result.learning_rate_multiplier && !result.weight_decay)
    fail("learning_rate_multiplier or weight_decay beside the pattern");
  validate_parameter_overrides({result});
  return result;
}

ParameterGroup no_weight_decay_on_vectors() {
  return {.name = "vectors",
          .matches = [](std::string_view, const Shape& shape) { return shape.rank() <= 1; },
          .learning_rate_multiplier = 1,
          .weight_decay = 0.0,
          .may_be_empty = true};
}

std::vector<ParameterGroup> default_parameter_groups() { return {no_weight_decay_on_vectors()}; }

void validate_parameter_groups(const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& group : groups) {
    if (!group.matches)
      throw InvalidArgument(fmt::format(
          "parameter group \"{}\" has no predicate: set .matches to say which variables belong to it",
          group.name));
    const std::string what = fmt::format("parameter group \"{}\"", group.name);
    require_not_negative(what, "learning_rate_multiplier", group.learning_rate_multiplier);
    if (group.weight_decay) require_not_negative(what, "weight_decay", *group.weight_decay);
  }
}

void validate_parameter_overrides(const std::vector<ParameterOverride>& overrides) {
  for (const ParameterOverride& override : overrides) {
    const std::string what = fmt::format("parameter group of pattern '{}'", override.pattern);
    require_not_negative(what, "learning_rate_multiplier", override.learning_rate_multiplier.value_or(1));
    require_not_negative(what, "weight_decay", override.weight_decay.value_or(0));
  }
}

void require_members(const std::vector<ParameterGroup>& groups,
                     const std::vector<ParameterOverride>& overrides,
                     std::span<const TrainableVariable> variables) {
  std::vector<Rule> of_groups, of_overrides;
  for (const ParameterGroup& group : groups)
    of_groups.push_back({fmt::format("the parameter group \"{}\"", group.name),
                         [&](const TrainableVariable& v) { return group.matches(v.name, v.shape); },
                         group.may_be_empty});
  for (const ParameterOverride& override : overrides)
    of_overrides.push_back({fmt::format("the pattern '{}' of a parameter group", override.pattern),
                            [&](const TrainableVariable& v) { return matches(override, v.name); }});
  require_members_of_each(of_groups, variables);
  require_members_of_each(of_overrides, variables);
}

ParameterSettings resolve_parameter_settings(const std::vector<ParameterGroup>& groups, double weight_decay,
                                             std::string_view variable, const Shape& shape,
                                             const std::vector<ParameterOverride>& overrides) {
  ParameterSettings settings{"", 1.0, weight_decay};
  const auto group = std::ranges::find_if(groups, [&](const auto& g) { return g.matches(variable, shape); });
  if (group != groups.end())
    settings = {group->name, group->learning_rate_multiplier, group->weight_decay.value_or(weight_decay)};
  const auto override = std::ranges::find_if(overrides, [&](const auto& o) { return matches(o, variable); });
  if (override != overrides.end()) {
    settings.learning_rate_multiplier =
        override->learning_rate_multiplier.value_or(settings.learning_rate_multiplier);
    settings.weight_decay = override->weight_decay.value_or(settings.weight_decay);
  }
  return settings;
}

}  // namespace mox
