// A step whose variables a StepRule changes: its loss, and the loss of its batch with other values.
#include <cstring>
#include <utility>

#include "moxing/engine/step/internal/replicated_step_reductions.h"
#include "moxing/engine/step/replicated_step.h"
#include "runtime/base/random.h"

namespace mox::internal {

void ReplicatedStep::apply_rule(double gradient_scale) {
  std::vector<double> losses(models_.size(), 0.0);
  for (size_t local = 0; local < batches_.size(); ++local)
    losses[local] = placement_.logical_replicas == 1 ? models_[local]->fetched(kTrainedLoss).item()
                                                     : numbers_[local][0];  // the first of a model's fetches
  const auto loss_now = [this] { return loss_of_variables(); };
  rule_->apply({.variables = current_->gradient_variables,
                .gradients = sums_,
                .gradient_scale = gradient_scale,
                .loss = mean_of_replicas(losses),
                .loss_now = loss_now});
}

double ReplicatedStep::loss_of_variables() {
  for (CompiledModel* model : models_)
    if (model) compiler_.make_forward_only(*model);
  if (placement_.replicas_meet) compiler_.make_forward_only(*full_model_);
  if (placement_.logical_replicas > 1) begin_meeting();
  std::vector<double> losses(models_.size(), 0.0);
  lanes_.run([&](int lane) {
    try {
      const int64_t count = placement_.replicas_per_lane();
      for (int64_t nth = 0; nth < count; ++nth) {
        const auto local = static_cast<size_t>(lane * count + nth);
        const bool has_batch = local < batches_.size();
        if (!has_batch && !placement_.replicas_meet) continue;
        PlanInstance& instance = (has_batch ? *models_[local] : *full_model_).forward_of_lane(lane);
        const EnteredExchange entered(placement_.logical_replicas == 1 ? nullptr : &meeting_.of(local));
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

double ReplicatedStep::mean_of_replicas(const std::vector<double>& values) {
  std::vector<double> own;  // of each replica its samples and its value
  for (size_t local = 0; local < values.size(); ++local) {
    own.push_back(local < batches_.size() ? static_cast<double>(batches_[local].size) : 0.0);
    own.push_back(values[local]);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(double));
  const auto all = placement_.ranks == 1 ? std::vector<std::string>{std::string(bytes)}
                                         : communicator_.allgather_equal(bytes);
  double sum = 0, samples = 0;
  for (const std::string& theirs : all) {
    std::memcpy(own.data(), theirs.data(), theirs.size());
    for (size_t i = 0; i < own.size(); i += 2) {
      if (own[i] == 0) continue;  // there is no value
      sum += own[i] * own[i + 1];
      samples += own[i];
    }
  }
  return sum / samples;
}

}  // namespace mox::internal
