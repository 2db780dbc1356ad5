// What the built-in optimizers share: everything but the update rule.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

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

// One a file: optimizer_<name>.cc. They take valid options and read those that belong to them.
std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_momentum(const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_adagrad(const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_adadelta(const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_rmsprop(const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_ftrl(const OptimizerOptions& options);

}  // namespace mox::internal
