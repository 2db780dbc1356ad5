// Adadelta:
//   square = rho * square + (1 - rho) * gradient^2
//   delta  = gradient * sqrt(square_delta + epsilon) / sqrt(square + epsilon)
//   square_delta = rho * square_delta + (1 - rho) * delta^2
//   value -= learning_rate * delta
// Epsilon is inside both roots, as in the paper, TensorFlow and PyTorch; the paper has no learning rate (use
// 1). Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (2012), whose rho 0.95 and epsilon 1e-6 are the
// defaults.
#include <fmt/format.h>

#include <cmath>

#include "moxing/optimizers/internal/rule_optimizer.h"
#include "moxing/optimizers/internal/update_loop.h"

namespace mox::internal {
namespace {

class Adadelta final : public RuleOptimizer {
 public:
  explicit Adadelta(const OptimizerOptions& options)
      : RuleOptimizer(
            "adadelta", options,
            fmt::format("rho {}, epsilon {}", options.rho.value_or(0.95), options.epsilon.value_or(1e-6))),
        rho_(options.rho.value_or(0.95)),
        epsilon_(options.epsilon.value_or(1e-6)) {}

  std::vector<SlotSpec> slots() const override { return {{"square"}, {"square_delta"}}; }

  void apply(const ParameterUpdate& update, const Team& team) const override {
    const EffectiveGradient effective(update, update.weight_decay);
    const float rate = update.learning_rate, epsilon = epsilon_;
    const float rho = rho_, one_minus_rho = 1 - rho_;
    update_elements<2>(update, team, [=](float& value, float gradient, float& square, float& square_delta) {
      const float g = effective(gradient, value);
      square = rho * square + one_minus_rho * (g * g);
      const float delta = g * (std::sqrt(square_delta + epsilon) / std::sqrt(square + epsilon));
      square_delta = rho * square_delta + one_minus_rho * (delta * delta);
      value -= rate * delta;
    });
  }

 private:
  double rho_, epsilon_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adadelta(const OptimizerOptions& options) {
  return std::make_unique<Adadelta>(options);
}

}  // namespace mox::internal
