// What the built-in optimizers share: everything but the update rule.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "moxing/config/optimizer_rows.h"
#include "moxing/optimizers/optimizer.h"

namespace mox::internal {

class RuleOptimizer : public Optimizer {
 public:
  // `settings` are the rule's own, for the description: "momentum 0.9".
  RuleOptimizer(std::string_view name, const OptimizerOptions& options, std::string settings);

  std::string_view name() const override { return name_; }
  std::string description() const override;
  double learning_rate(int64_t step, double steps_per_epoch) const override;
  bool needs_steps_per_epoch() const override { return learning_rate_.needs_steps_per_epoch(); }
  bool is_elementwise() const override { return true; }
  ParameterSettings parameter_settings(std::string_view variable, const Shape& shape) const override;
  void check_variables(std::span<const TrainableVariable> variables) const override;

 private:
  std::string name_;
  Schedule learning_rate_;
  double weight_decay_;
  std::vector<ParameterGroup> groups_;
  std::vector<ParameterOverride> overrides_;
  std::string settings_;
};

// make_<name>, one a file <name>.cc. They take valid options and read those that belong to them.
#define MOX_ROW(name, ...) std::unique_ptr<Optimizer> make_##name(const OptimizerOptions& options);
MOX_OPTIMIZER_ROWS(MOX_ROW)
#undef MOX_ROW

}  // namespace mox::internal
