// A step whose variables a StepRule changes: its loss, and the loss of its batch with other values.
#include "moxing/engine/step/internal/replicated_step_reductions.h"
#include "moxing/engine/step/replicated_step.h"
#include "runtime/base/random.h"

namespace mox::internal {

void ReplicatedStep::set_rule(StepRule* rule) {
  gate_.set_rule([this, rule](std::span<const std::span<float>> gradients, double scale) {
    apply_rule(*rule, gradients, scale);
  });
}

void ReplicatedStep::apply_rule(StepRule& rule, std::span<const std::span<float>> gradients, double scale) {
  std::vector<double> losses(models_.size(), 0.0);
  for (size_t local = 0; local < batches_.size(); ++local)
    losses[local] = is_alone() ? models_[local]->fetched(kTrainedLoss).item() : values_.loss_of(local);
  const auto loss_now = [this] { return loss_of_variables(); };
  rule.apply({.variables = current_->gradient_variables,
              .gradients = gradients,
              .gradient_scale = scale,
              .loss = mean_of_replicas(losses),
              .loss_now = loss_now});
}

double ReplicatedStep::loss_of_variables() {
  for (CompiledModel* model : models_)
    if (model) engine_.compiler.make_forward_only(*model);
  if (engine_.placement.replicas_meet) engine_.compiler.make_forward_only(*full_model_);
  if (!is_alone()) begin_meeting();
  std::vector<double> losses(models_.size(), 0.0);
  engine_.lanes.run([&](int lane) {
    try {
      const int64_t count = engine_.placement.replicas_per_lane();
      for (int64_t nth = 0; nth < count; ++nth) {
        const size_t local = lane * count + nth;
        const bool has_batch = local < batches_.size();
        if (!has_batch && !engine_.placement.replicas_meet) continue;
        PlanInstance& instance = (has_batch ? *models_[local] : *full_model_).forward_of_lane(lane);
        const EnteredExchange entered(is_alone() ? nullptr : &meeting_.of(local));
        if (has_batch) {
          instance.run(inputs_of(local));
          losses[local] = instance.fetched(0).item();
        } else {
          instance.run({.components = no_batch_, .seed = moment_.seed, .step = moment_.step});
        }
      }
    } catch (...) {
      meeting_.give_up(std::current_exception());
      throw;
    }
  });
  return mean_of_replicas(losses);
}

// `values`: of this process's replicas. All ranks call it together.
double ReplicatedStep::mean_of_replicas(const std::vector<double>& values) {
  std::vector<std::vector<double>> of_replicas;
  for (const double value : values) of_replicas.push_back({value});
  return values_.means_over_samples(of_replicas, 1, engine_.ranks)[0];
}

}  // namespace mox::internal
