// Dimension-reduced training within a run.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "moxing/engine/session/internal/trainer.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"

namespace mox::internal {
void Trainer::make_stage_two() {
  auto& slots = start_.checkpoint.optimizer_slots;
  const auto residual = std::ranges::find(slots, kResidualSlot, &NamedArray::name);
  if (residual != slots.end()) {
    if (start_.kind == StartingPoint::Kind::kContinued)
      kept_stage_two_ = {restored_.stage_two, residual->value, start_.path};
    slots.erase(residual);
  }
  if (!settings_.dim_reduce || settings_.print_plan) {
    if (kept_stage_two_ && ranks_.rank() == 0 && !settings_.print_plan)
      log_warning(
          fmt::format("'{}' is of stage 2 of dimension-reduced training, and this run goes on with the "
                      "optimizer: boost.dim_reduce is off",
                      start_.path));
    return;
  }
  if (settings_.update_scheme != UpdateScheme::kReplicatedHost)
    throw InvalidArgument(
        "dimension-reduced training needs variable_update: replicated_host, one copy of the variables a "
        "process");
  stage_two_ = std::make_unique<boost::StageTwo>(
      *settings_.dim_reduce, boost::StageTwo::Place{settings_.log_dir, settings_.snapshots}, ranks_);
}

void Trainer::prepare_stage_two(const CompiledModel& model) {
  if (!stage_two_) return;
  std::vector<Shape> shapes;
  for (const std::string& name : model.gradient_variables) shapes.push_back(store_.get(name).shape());
  stage_two_->prepare(boost::WeightLayout(model.gradient_variables, shapes),
                      {.global_step = global_step_,
                       .steps_per_epoch = steps_per_epoch_,
                       .has_weights = start_.kind != StartingPoint::Kind::kInitial,
                       .kept = std::exchange(kept_stage_two_, std::nullopt)});
  boost_rule_ = std::make_unique<BoostRule>(*stage_two_, store_);
}

void Trainer::begin_stage_two() {
  const JobActivity activity("computing the basis of stage 2");
  set_stall_limits(std::min(settings_.stall_warning_s, settings_.dim_reduce->timeout),
                   settings_.dim_reduce->timeout);
  stage_two_->begin(workers_of(*lanes_, team_));
  set_stall_limits(settings_.stall_warning_s, settings_.stall_abort_s);
  step_->set_rule(boost_rule_.get());
}

}  // namespace mox::internal
