#include "moxing/engine/session/internal/training/stage_two_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

// Which run has written snapshots on the way to a checkpoint; "" if none, and for a state of another form: it
// is asked for a warning alone.
std::string snapshots_run_of(const Checkpoint& checkpoint, const std::string& path) {
  const auto hooks = checkpoint.state.find("hooks");
  if (hooks == checkpoint.state.end()) return "";
  const auto states = parse_json_or_discard(hooks->second, path);
  if (!states.is_object() || !states.contains("snapshots") || !states["snapshots"].is_string()) return "";
  const auto of_hook = parse_json_or_discard(states["snapshots"].get<std::string>(), path);
  if (!of_hook.is_object() || !of_hook.contains("run") || !of_hook["run"].is_string()) return "";
  return of_hook["run"].get<std::string>();
}

}  // namespace

StageTwoRun::StageTwoRun(Start& start, Communicator& ranks) {
  auto& slots = start.point.checkpoint.optimizer_slots;
  const auto residual = std::ranges::find(slots, kResidualSlot, &NamedArray::name);
  if (residual != slots.end()) {
    if (start.is_continued()) kept_ = {start.restored.stage_two, residual->value, start.point.path};
    slots.erase(residual);
  }
  const RunSettings& settings = start.settings;
  if (!settings.dim_reduce || settings.print_plan) {
    if (kept_ && ranks.rank() == 0 && !settings.print_plan)
      log_warning(
          fmt::format("'{}' is of stage 2 of dimension-reduced training, and this run goes on with the "
                      "optimizer: boost.dim_reduce is off",
                      start.point.path));
    return;
  }
  if (settings.distribution.update_scheme != UpdateScheme::kReplicatedHost)
    throw InvalidArgument(
        "dimension-reduced training needs variable_update: replicated_host, one copy of the variables a "
        "process");
  snapshots_run_ = snapshots_run_of(start.point.checkpoint, start.point.path);
  stage_ = std::make_unique<boost::StageTwo>(
      *settings.dim_reduce, boost::StageTwo::Place{settings.places.log_dir, settings.snapshots}, ranks);
}

void StageTwoRun::prepare(const CompiledModel& model, Start& start, const TrainingData& data) {
  if (!stage_) return;
  std::vector<Shape> shapes;
  for (const std::string& name : model.gradient_variables) shapes.push_back(start.store.get(name).shape());
  stage_->prepare(boost::WeightLayout(model.gradient_variables, shapes),
                  {.global_step = start.restored.global_step,
                   .steps_per_epoch = data.steps_per_epoch(),
                   .last_step_of_stage_one = data.step_of_passes(start.settings.dim_reduce->from_epoch),
                   .steps_are_alike = data.are_steps_alike(),
                   .has_weights = start.point.kind != StartingPoint::Kind::kInitial,
                   .kept = std::exchange(kept_, std::nullopt),
                   .run = snapshots_run_,
                   .path = start.point.path});
  rule_ = std::make_unique<BoostRule>(*stage_, start.store);
}

void StageTwoRun::begin_if_due(int64_t global_step, const RunSettings& settings, const StepEngine& engine,
                               ReplicatedStep& step) {
  if (!stage_ || !stage_->is_due(global_step)) return;
  const JobActivity activity("computing the basis of stage 2");
  const double timeout = settings.dim_reduce->timeout;
  set_stall_limits(std::min(settings.distribution.stall_warning_s, timeout), timeout, "dim_reduce.timeout");
  stage_->begin(workers_of(engine.lanes, engine.team));
  set_stall_limits(settings.distribution.stall_warning_s, settings.distribution.stall_abort_s);
  step.set_rule(rule_.get());
  if (job().rank() == 0)
    log_info(
        "stage 2 begins: a search in the subspace changes the weights now; the optimizer does not act, nor do "
        "its learning rate, weight decay and clipping");
}

void StageTwoRun::add_slots(std::vector<NamedArray>* slots) const {
  if (stage_ && stage_->has_begun())
    slots->push_back({std::string(kResidualSlot), stage_->method().residual()});
}

}  // namespace mox::internal
