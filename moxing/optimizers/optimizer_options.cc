#include "moxing/optimizers/optimizer_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "moxing/config/flags.h"
#include "moxing/config/given_by_user.h"
#include "moxing/optimizers/internal/built_in_optimizer.h"
#include "moxing/optimizers/optimizer_wrapper.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

constexpr double kLearningRate = 0.01;  // where neither the program nor the configuration gives one

bool is_configured(const std::string& option) { return is_given(option) && option_origin(option) != "code"; }

// The options optimizer.* that a YAML file, a flag or set_flag has given.
std::vector<std::string> configured_names() {
  std::vector<std::string> names;
  for (const Option& option : built_in_options())
    if (option.name.starts_with("optimizer.") && is_configured(option.name))
      names.push_back(fmt::format("{} ({})", option.name, option_origin(option.name)));
  return names;
}

Schedule to_schedule(const NumberOrString& value) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  return std::get<std::string>(value);
}

std::optional<NumberOrString> to_option(const Schedule& schedule) {
  const std::optional<std::string> text = schedule.text();
  if (!text) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error == std::errc() && end == text->data() + text->size()) return number;
  return *text;
}

// What the program's optimizer says of an option, unless the program says it by name, too: that counts.
template <typename T>
std::optional<T> unless_by_name(const std::string& name, std::optional<T> value) {
  return is_said_by_program(name) ? std::nullopt : value;
}

OptimizerFn with_configured_options(const OptimizerFn& from_code) {
  const BuiltInOptimizerFn* built_in = from_code ? from_code.target<BuiltInOptimizerFn>() : nullptr;
  if (from_code && !built_in) {
    const auto names = configured_names();
    if (!names.empty())
      throw ConfigError(
          fmt::format("this program's optimizer_fn is its own, so the configuration cannot change it: {} "
                      "would have no effect. Remove them, or use get_optimizer_fn in the program",
                      fmt::join(names, ", ")));
    return from_code;
  }
  const std::string name = resolve<std::string>(
      "optimizer.name", unless_by_name<std::string>("optimizer.name", built_in ? built_in->name : "sgd"));
  const std::string of_program =
      text_of_program("optimizer.name").value_or(built_in ? built_in->name : "sgd");
  const bool is_other_rule = name != of_program;
  OptimizerOptions options;
  if (built_in) {
    options = built_in->options;
    if (name != built_in->name) {  // another rule: what is particular to the old one is not carried over
      OptimizerOptions common;
      common.learning_rate = options.learning_rate;
      common.weight_decay = options.weight_decay;
      common.parameter_groups = options.parameter_groups;
      common.parameter_overrides = options.parameter_overrides;
      options = common;
    }
  }
  std::optional<NumberOrString> rate_of_code = NumberOrString(kLearningRate);
  if (built_in)
    rate_of_code =
        to_option(options.learning_rate);  // none: what the configuration cannot express is not shown in it
  if (const auto rate = resolve_optional<NumberOrString>(
          "optimizer.learning_rate", unless_by_name("optimizer.learning_rate", rate_of_code)))
    options.learning_rate = to_schedule(*rate);
  options.weight_decay = resolve<double>(
      "optimizer.weight_decay", unless_by_name<double>("optimizer.weight_decay", options.weight_decay));
  const auto take = [&]<typename T>(const char* name, std::optional<T>* option) {
    // Neither is what the program says by name of another rule.
    if (is_other_rule && is_value_of_program(name)) return set_aside_value_of_program(name);
    if (const auto value = resolve_optional<T>(name, unless_by_name(name, *option))) *option = value;
  };
  take("optimizer.momentum", &options.momentum);
  take("optimizer.nesterov", &options.nesterov);
  take("optimizer.beta1", &options.beta1);
  take("optimizer.beta2", &options.beta2);
  take("optimizer.rho", &options.rho);
  take("optimizer.epsilon", &options.epsilon);
  take("optimizer.centered", &options.centered);
  take("optimizer.initial_accumulator", &options.initial_accumulator);
  take("optimizer.l1_regularization", &options.l1_regularization);
  take("optimizer.l2_regularization", &options.l2_regularization);
  if (const auto groups = resolve_optional<std::vector<std::string>>("optimizer.groups", std::nullopt)) {
    options.parameter_overrides.clear();
    try {
      for (const std::string& text : *groups)
        options.parameter_overrides.push_back(parse_parameter_override(text));
    } catch (const InvalidArgument& failure) {
      throw ConfigError(
          fmt::format("{}: optimizer.groups: {}", option_origin("optimizer.groups"), failure.what()));
    }
  }
  return get_optimizer_fn(name, options);
}

}  // namespace

OptimizerFn configured_optimizer(const OptimizerFn& from_code) {
  OptimizerFn optimizer = with_configured_options(from_code);
  const double value_limit = resolve<double>("clip_gradient_value", std::nullopt);
  const double norm_limit = resolve<double>("clip_gradient_norm", std::nullopt);
  if (value_limit > 0)
    optimizer = get_optimizer_wrapper_fn("clip_by_value", {.limit = value_limit})(optimizer);
  if (norm_limit > 0)
    optimizer = get_optimizer_wrapper_fn("clip_by_global_norm", {.limit = norm_limit})(optimizer);
  return optimizer;
}

}  // namespace mox::internal
