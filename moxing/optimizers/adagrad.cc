// Adagrad:
//   accumulator += gradient^2
//   value -= learning_rate * gradient / (sqrt(accumulator) + epsilon)
// The accumulator begins at initial_accumulator (0.1 as in TensorFlow; PyTorch begins at 0); epsilon is
// outside the root, as in PyTorch. Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning
// and Stochastic Optimization" (JMLR 2011).
#include <fmt/format.h>

#include <cmath>

#include "moxing/optimizers/internal/rule_optimizer.h"
#include "moxing/optimizers/internal/update_loop.h"

namespace mox::internal {
namespace {

class Adagrad final : public RuleOptimizer {
 public:
  explicit Adagrad(const OptimizerOptions& options)
      : RuleOptimizer(
            "adagrad", options,
            fmt::format("initial_accumulator {}, epsilon {}", options.initial_accumulator.value_or(0.1),
                        options.epsilon.value_or(1e-10))),
        initial_accumulator_(options.initial_accumulator.value_or(0.1)),
        epsilon_(options.epsilon.value_or(1e-10)) {}

  std::vector<SlotSpec> slots() const override { return {{"accumulator", initial_accumulator_}}; }

  void apply(const ParameterUpdate& update, const Team& team) const override {
    const EffectiveGradient effective(update, update.weight_decay);
    const float rate = update.learning_rate, epsilon = epsilon_;
    update_elements<1>(update, team, [=](float& value, float gradient, float& accumulator) {
      const float g = effective(gradient, value);
      accumulator += g * g;
      value -= rate * (g / (std::sqrt(accumulator) + epsilon));
    });
  }

 private:
  float initial_accumulator_, epsilon_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adagrad(const OptimizerOptions& options) {
  return std::make_unique<Adagrad>(options);
}

}  // namespace mox::internal
