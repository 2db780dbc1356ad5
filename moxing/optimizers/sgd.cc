// Stochastic gradient descent: value -= learning_rate * gradient.
#include "moxing/optimizers/internal/rule_optimizer.h"
#include "moxing/optimizers/internal/update_loop.h"

namespace mox::internal {
namespace {

class Sgd final : public RuleOptimizer {
 public:
  explicit Sgd(const OptimizerOptions& options) : RuleOptimizer("sgd", options, "") {}

  std::vector<SlotSpec> slots() const override { return {}; }

  void apply(const ParameterUpdate& update, const Team& team) const override {
    const EffectiveGradient effective(update, update.weight_decay);
    const float rate = update.learning_rate;
    update_elements<0>(update, team,
                       [=](float& value, float gradient) { value -= rate * effective(gradient, value); });
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace mox::internal
