#include "moxing/optimizers/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "moxing/config/optimizer_rows.h"
#include "moxing/optimizers/internal/built_in_optimizer.h"
#include "moxing/optimizers/internal/rule_optimizer.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox {
namespace {

struct Registration {
  std::string_view name;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions&);
  std::vector<std::string_view> options;  // that it reads, beside those that all read
};

const std::vector<Registration>& registrations() {
#define MOX_ROW(name, ...) {#name, internal::make_##name, {__VA_ARGS__}},
  static const std::vector<Registration> table = {MOX_OPTIMIZER_ROWS(MOX_ROW)};
#undef MOX_ROW
  return table;
}

void check_range(std::string_view optimizer, std::string_view option, double value, bool valid,
                 std::string_view expected) {
  if (!valid || !std::isfinite(value))
    throw InvalidArgument(
        fmt::format("optimizer \"{}\": {} must be {}, got {}", optimizer, option, expected, value));
}

// Refuses the options that are set but that the optimizer does not read, and values out of range.
void validate(const Registration& registration, const OptimizerOptions& options) {
  const auto check_used = [&](std::string_view option) {
    if (std::find(registration.options.begin(), registration.options.end(), option) !=
        registration.options.end())
      return;
    std::vector<std::string_view> readers;
    for (const Registration& other : registrations())
      if (std::find(other.options.begin(), other.options.end(), option) != other.options.end())
        readers.push_back(other.name);
    throw InvalidArgument(fmt::format(
        "optimizer \"{}\" does not use the option {} (used by: {}); remove it or choose another optimizer",
        registration.name, option, fmt::join(readers, ", ")));
  };
  const auto check = [&](std::string_view option, const std::optional<double>& value, auto valid,
                         std::string_view expected) {
    if (!value) return;
    check_used(option);
    check_range(registration.name, option, *value, valid(*value), expected);
  };
  const auto fraction = [](double v) { return v >= 0 && v < 1; };
  const auto positive = [](double v) { return v > 0; };
  const auto not_negative = [](double v) { return v >= 0; };

  check_range(registration.name, "weight_decay", options.weight_decay, options.weight_decay >= 0,
              "a finite number >= 0");
  validate_parameter_groups(options.parameter_groups);
  validate_parameter_overrides(options.parameter_overrides);
  check("momentum", options.momentum, fraction, "in [0, 1)");
  check("beta1", options.beta1, fraction, "in [0, 1)");
  check("beta2", options.beta2, fraction, "in [0, 1)");
  check("rho", options.rho, fraction, "in [0, 1)");
  check("epsilon", options.epsilon, positive, "a finite number > 0");
  check("l1_regularization", options.l1_regularization, not_negative, "a finite number >= 0");
  check("l2_regularization", options.l2_regularization, not_negative, "a finite number >= 0");
  if (registration.name == "ftrl")
    check("initial_accumulator", options.initial_accumulator, positive, "a finite number > 0");
  else
    check("initial_accumulator", options.initial_accumulator, not_negative, "a finite number >= 0");
  if (options.nesterov) check_used("nesterov");
  if (options.centered) check_used("centered");
  if (!options.learning_rate.needs_steps_per_epoch()) {
    const double first = options.learning_rate.value(0);
    check_range(registration.name, "learning_rate", first, first >= 0, "a finite number >= 0");
  }
}

}  // namespace

OptimizerFn get_optimizer_fn(std::string_view name, OptimizerOptions options) {
  const auto& table = registrations();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Registration& entry) { return entry.name == name; });
  if (found == table.end())
    throw InvalidArgument(internal::unknown_name_message("optimizer", name, optimizer_names()));
  validate(*found, options);
  return internal::BuiltInOptimizerFn{std::string(name), std::move(options)};
}

std::unique_ptr<Optimizer> internal::BuiltInOptimizerFn::operator()() const {
  for (const Registration& entry : registrations())
    if (entry.name == name) return entry.make(options);
  MOX_ASSERT(false, "the name was checked by get_optimizer_fn");
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Registration& entry : registrations()) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Optimizer> distributed(std::unique_ptr<Optimizer> optimizer) { return optimizer; }
OptimizerFn distributed(OptimizerFn optimizer_fn) { return optimizer_fn; }

}  // namespace mox
