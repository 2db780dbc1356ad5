#include "moxing/engine/session/internal/training/distribution_settings.h"

#include <cmath>

#include "moxing/config/options.h"
#include "moxing/engine/step/loss_scale.h"
#include "runtime/job/job.h"

namespace mox::internal {

Placement placement_of(const RunSettings& settings, const StartingPoint& start,
                       const TrainingState& restored) {
  const bool continued = start.kind == StartingPoint::Kind::kContinued;
  return place({.rank = job().rank(),
                .ranks = job().size(),
                .devices = settings.cores.devices,
                .cores = settings.cores.threads,
                .threads_per_device = settings.cores.threads_per_device,
                .logical_replicas = settings.distribution.logical_replicas,
                .kept_replicas = continued ? restored.logical_replicas : 0,
                .kept_threads_per_replica = continued ? restored.threads : 0,
                .allow_inexact = settings.distribution.allow_inexact,
                .replicas_meet = settings.distribution.sync_batch_norm,
                .checkpoint = start.path});
}

double learning_rate_scale(const RunSettings& settings, const Placement& placement) {
  const double replicas = placement.logical_replicas;
  if (settings.distribution.scale_learning_rate == "none") return 1;
  return settings.distribution.scale_learning_rate == "linear" ? replicas : std::sqrt(replicas);
}

// Where gradients are not sent, each is taken as soon as it is there; with several replicas in ranges of
// which those of two replicas, the variable and its slots are in a core's cache together (one alone has a
// team, which shares it whole).
TrainingFacts training_facts_of(const RunSettings& settings, const Placement& placement) {
  const std::shared_ptr<const Optimizer> optimizer = settings.optimizer_fn();
  return {.is_frozen =
              [optimizer, freeze = settings.freeze](std::string_view variable, const Shape& shape) {
                return freeze.match(variable) ||
                       optimizer->parameter_settings(variable, shape).learning_rate_multiplier == 0;
              },
          .check_trainable =
              [optimizer](const std::vector<std::pair<std::string, Shape>>& variables) {
                std::vector<TrainableVariable> all;
                for (const auto& [name, shape] : variables) all.push_back({name, shape});
                optimizer->check_variables(all);
              },
          .replicas = placement.logical_replicas,
          .normalises_together = resolve<bool>("sync_batch_norm", std::nullopt)};
}

BucketOptions bucket_options(const RunSettings& settings, const Placement& placement) {
  constexpr int64_t kRangeElements = int64_t{1} << 13;
  if (placement.ranks == 1) return {.range_elements = placement.logical_replicas > 1 ? kRangeElements : 0};
  const auto elements = [](double mebibytes) {
    return static_cast<int64_t>(mebibytes * (1 << 20) / sizeof(float));
  };
  BucketOptions options;
  options.first_bucket_elements = elements(settings.distribution.first_bucket_mb);
  options.bucket_elements = elements(settings.distribution.bucket_mb);
  options.wire = settings.distribution.bfloat16_on_the_wire ? WireType::kBFloat16 : WireType::kFloat32;
  // With loss scaling every rank looks at the sums, to know whether the step counts.
  const bool all_look =
      LossScale(settings.loss_scaling.scale, {}, settings.loss_scaling.drops_overflows).may_leave_out();
  if (settings.distribution.update_scheme == UpdateScheme::kParameterServer && !all_look) options.root = 0;
  return options;
}

}  // namespace mox::internal
