// FTRL-Proximal, the form of TensorFlow's FtrlOptimizer with learning_rate_power -0.5:
//   sigma   = (sqrt(accumulator + gradient^2) - sqrt(accumulator)) / learning_rate
//   linear += gradient - sigma * value
//   accumulator += gradient^2
//   value   = 0                                                                                   if |linear|
//   <= l1
//           = (sign(linear) * l1 - linear) / (sqrt(accumulator) / learning_rate + 2 * l2)         otherwise
// McMahan et al., "Ad Click Prediction: a View from the Trenches" (KDD 2013), Algorithm 1. The accumulator
// begins at initial_accumulator (0.1). The formula divides by the learning rate: an update at rate 0 changes
// nothing at all.
#include <fmt/format.h>

#include <cmath>

#include "moxing/optimizers/internal/rule_optimizer.h"
#include "moxing/optimizers/internal/update_loop.h"

namespace mox::internal {
namespace {

class Ftrl final : public RuleOptimizer {
 public:
  explicit Ftrl(const OptimizerOptions& options)
      : RuleOptimizer(
            "ftrl", options,
            fmt::format("l1 {}, l2 {}, initial_accumulator {}", options.l1_regularization.value_or(0),
                        options.l2_regularization.value_or(0), options.initial_accumulator.value_or(0.1))),
        l1_(options.l1_regularization.value_or(0)),
        l2_(options.l2_regularization.value_or(0)),
        initial_accumulator_(options.initial_accumulator.value_or(0.1)) {}

  std::vector<SlotSpec> slots() const override { return {{"accumulator", initial_accumulator_}, {"linear"}}; }

  void apply(const ParameterUpdate& update, const Team& team) const override {
    if (update.learning_rate == 0) return;
    const EffectiveGradient effective(update, update.weight_decay);
    const float inverse_rate = 1 / update.learning_rate;
    const float l1 = l1_, twice_l2 = 2 * l2_;
    update_elements<2>(update, team, [=](float& value, float gradient, float& accumulator, float& linear) {
      const float g = effective(gradient, value);
      const float grown = accumulator + g * g;
      const float root = std::sqrt(grown);
      linear += g - (root - std::sqrt(accumulator)) * inverse_rate * value;
      accumulator = grown;
      // A NaN compares with nothing, so it takes the last branch and stays NaN.
      const float shrunk = (linear < 0 ? -l1 : l1) - linear;
      value = std::fabs(linear) <= l1 ? 0.0f : shrunk / (root * inverse_rate + twice_l2);
    });
  }

 private:
  float l1_, l2_, initial_accumulator_;
};

}  // namespace

std::unique_ptr<Optimizer> make_ftrl(const OptimizerOptions& options) {
  return std::make_unique<Ftrl>(options);
}

}  // namespace mox::internal
