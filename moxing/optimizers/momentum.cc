// Gradient descent with momentum:
//   momentum = mu * momentum + gradient
//   value -= learning_rate * momentum                        (heavy ball)
//   value -= learning_rate * (gradient + mu * momentum)      (Nesterov)
// TensorFlow and PyTorch (dampening 0) agree on this form: the rate is outside the velocity, so a change of
// the rate acts at once. Polyak, "Some methods of speeding up the convergence of iteration methods" (1964);
// Sutskever et al., "On the importance of initialization and momentum in deep learning" (ICML 2013).
#include <fmt/format.h>

#include "moxing/optimizers/internal/rule_optimizer.h"
#include "moxing/optimizers/internal/update_loop.h"

namespace mox::internal {
namespace {

class Momentum final : public RuleOptimizer {
 public:
  explicit Momentum(const OptimizerOptions& options)
      : RuleOptimizer("momentum", options,
                      fmt::format("momentum {}{}", options.momentum.value_or(0.9),
                                  options.nesterov.value_or(false) ? " (Nesterov)" : "")),
        momentum_(options.momentum.value_or(0.9)),
        nesterov_(options.nesterov.value_or(false)) {}

  std::vector<SlotSpec> slots() const override { return {{"momentum"}}; }

  void apply(const ParameterUpdate& update, const Team& team) const override {
    const EffectiveGradient effective(update, update.weight_decay);
    const float rate = update.learning_rate, mu = momentum_;
    if (nesterov_) {
      update_elements<1>(update, team, [=](float& value, float gradient, float& momentum) {
        const float g = effective(gradient, value);
        momentum = mu * momentum + g;
        value -= rate * (g + mu * momentum);
      });
    } else {
      update_elements<1>(update, team, [=](float& value, float gradient, float& momentum) {
        momentum = mu * momentum + effective(gradient, value);
        value -= rate * momentum;
      });
    }
  }

 private:
  float momentum_;
  bool nesterov_;
};

}  // namespace

std::unique_ptr<Optimizer> make_momentum(const OptimizerOptions& options) {
  return std::make_unique<Momentum>(options);
}

}  // namespace mox::internal
