// Adam and AdamW:
//   mean     = beta1 * mean     + (1 - beta1) * gradient
//   variance = beta2 * variance + (1 - beta2) * gradient^2
//   value   -= learning_rate * (mean / (1 - beta1^t)) / (sqrt(variance / (1 - beta2^t)) + epsilon)
// t is the number of the update, 1 for the first that mean and variance see. Epsilon stands outside the root
// and beside the corrected variance, as in the paper's Algorithm 1 and in PyTorch (TensorFlow adds it to the
// uncorrected root, its "epsilon hat"). Kingma and Ba, "Adam: A Method for Stochastic Optimization"
// (ICLR 2015).
//
// Weight decay: adam adds weight_decay * value to the gradient. adamw decouples it: before the step above,
//   value -= learning_rate * weight_decay * value
// Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (ICLR 2019), with the rate in the product as
// in PyTorch.
#include <fmt/format.h>

#include <cmath>

#include "moxing/optimizers/internal/rule_optimizer.h"
#include "moxing/optimizers/internal/update_loop.h"

namespace mox::internal {
namespace {

// 1 - beta^step without cancellation for beta near 1.
double bias_correction(double beta, int64_t step) { return -std::expm1(step * std::log(beta)); }

class Adam final : public RuleOptimizer {
 public:
  Adam(std::string_view name, bool decoupled, const OptimizerOptions& options)
      : RuleOptimizer(name, options,
                      fmt::format("beta1 {}, beta2 {}, epsilon {}", options.beta1.value_or(0.9),
                                  options.beta2.value_or(0.999), options.epsilon.value_or(1e-8))),
        decoupled_(decoupled),
        beta1_(options.beta1.value_or(0.9)),
        beta2_(options.beta2.value_or(0.999)),
        epsilon_(options.epsilon.value_or(1e-8)) {}

  std::vector<SlotSpec> slots() const override { return {{"mean"}, {"variance"}}; }

  void apply(const ParameterUpdate& update, const Team& team) const override {
    const EffectiveGradient effective(update, decoupled_ ? 0.0 : update.weight_decay);
    const float keep =
        decoupled_ ? static_cast<float>(1.0 - update.learning_rate * update.weight_decay) : 1.0f;
    const float beta1 = beta1_, one_minus_beta1 = 1 - beta1_;
    const float beta2 = beta2_, one_minus_beta2 = 1 - beta2_;
    const float epsilon = epsilon_;
    const float rate = update.learning_rate / bias_correction(beta1_, update.step);
    const float root_scale = 1 / std::sqrt(bias_correction(beta2_, update.step));
    update_elements<2>(update, team, [=](float& value, float gradient, float& mean, float& variance) {
      const float g = effective(gradient, value);
      mean = beta1 * mean + one_minus_beta1 * g;
      variance = beta2 * variance + one_minus_beta2 * (g * g);
      value = keep * value - rate * (mean / (std::sqrt(variance) * root_scale + epsilon));
    });
  }

 private:
  bool decoupled_;
  double beta1_, beta2_, epsilon_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& options) {
  return std::make_unique<Adam>("adam", false, options);
}

std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options) {
  return std::make_unique<Adam>("adamw", true, options);
}

}  // namespace mox::internal
