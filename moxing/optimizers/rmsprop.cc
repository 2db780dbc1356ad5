// RMSProp:
//   square   = rho * square + (1 - rho) * gradient^2
//   mean     = rho * mean + (1 - rho) * gradient                               (centered only)
//   scaled   = gradient / (sqrt(square - mean^2) + epsilon)                    (mean^2 = 0 unless centered)
//   momentum = mu * momentum + scaled                                          (mu > 0 only)
//   value   -= learning_rate * momentum (or scaled)
// PyTorch's convention: epsilon outside the root, the rate outside the velocity, square begins at 0.
// (TensorFlow has epsilon inside the root, the rate inside the velocity, and begins at 1.) rho is 0.9 as in
// the source and TensorFlow. Tieleman and Hinton, "Lecture 6.5 - rmsprop" (Coursera, 2012); centered: Graves,
// "Generating Sequences With Recurrent Neural Networks" (2013).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moxing/optimizers/internal/rule_optimizer.h"
#include "moxing/optimizers/internal/update_loop.h"

namespace mox::internal {
namespace {

class RmsProp final : public RuleOptimizer {
 public:
  explicit RmsProp(const OptimizerOptions& options)
      : RuleOptimizer("rmsprop", options,
                      fmt::format("rho {}, momentum {}, epsilon {}{}", options.rho.value_or(0.9),
                                  options.momentum.value_or(0), options.epsilon.value_or(1e-8),
                                  options.centered.value_or(false) ? ", centered" : "")),
        rho_(options.rho.value_or(0.9)),
        momentum_(options.momentum.value_or(0)),
        epsilon_(options.epsilon.value_or(1e-8)),
        centered_(options.centered.value_or(false)) {}

  std::vector<SlotSpec> slots() const override {
    std::vector<SlotSpec> slots = {{"square"}};
    if (centered_) slots.push_back({"mean"});
    if (momentum_ > 0) slots.push_back({"momentum"});
    return slots;
  }

  void apply(const ParameterUpdate& update, const Team& team) const override {
    const EffectiveGradient effective(update, update.weight_decay);
    const float rate = update.learning_rate, epsilon = epsilon_, mu = momentum_;
    const float rho = rho_, one_minus_rho = 1 - rho_;
    const auto plain = [=](float g, float& square) {
      square = rho * square + one_minus_rho * (g * g);
      return g / (std::sqrt(square) + epsilon);
    };
    const auto centered = [=](float g, float& square, float& mean) {
      square = rho * square + one_minus_rho * (g * g);
      mean = rho * mean + one_minus_rho * g;
      // Rounding can take the difference below zero.
      return g / (std::sqrt(std::max(square - mean * mean, 0.0f)) + epsilon);
    };
    if (centered_ && mu > 0) {
      update_elements<3>(update, team,
                         [=](float& value, float gradient, float& square, float& mean, float& momentum) {
                           momentum = mu * momentum + centered(effective(gradient, value), square, mean);
                           value -= rate * momentum;
                         });
    } else if (centered_) {
      update_elements<2>(update, team, [=](float& value, float gradient, float& square, float& mean) {
        value -= rate * centered(effective(gradient, value), square, mean);
      });
    } else if (mu > 0) {
      update_elements<2>(update, team, [=](float& value, float gradient, float& square, float& momentum) {
        momentum = mu * momentum + plain(effective(gradient, value), square);
        value -= rate * momentum;
      });
    } else {
      update_elements<1>(update, team, [=](float& value, float gradient, float& square) {
        value -= rate * plain(effective(gradient, value), square);
      });
    }
  }

 private:
  double rho_;
  float momentum_, epsilon_;
  bool centered_;
};

}  // namespace

std::unique_ptr<Optimizer> make_rmsprop(const OptimizerOptions& options) {
  return std::make_unique<RmsProp>(options);
}

}  // namespace mox::internal
