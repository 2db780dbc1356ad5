// The trainer as hooks see it, which is what Session declares; and what it needs once a run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "moxing/engine/session/internal/trainer.h"
#include "moxing/job/facts.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/job/network_probe.h"

namespace mox::internal {

void Trainer::request_stop(std::string reason) {
  if (stop_requested_) return;
  stop_requested_ = true;
  stop_reason_ = std::move(reason);
}

void Trainer::save_checkpoint() {
  if (!writer_) return;
  if (failed_)
    throw FailedPrecondition(
        fmt::format("nothing is saved after an error: the state after global step {} may be half of a step",
                    global_step_));
  // Within a step the batch is taken already and hooks that come later have not seen the step: neither the
  // data position nor the hooks' states would belong to it.
  if (in_step_) {
    save_is_due_ = true;
  } else {
    submit_checkpoint();
  }
}

void Trainer::submit_checkpoint() {
  if (saved_step_ == global_step_) return;
  const JobActivity activity("saving a checkpoint");
  // A finite loss may still have had a gradient that is not, and a continued run would never recover.
  if (const std::string* name = update_->updater().first_not_finite())
    throw NumericError(
        fmt::format("the variable '{}' is not finite after global step {} (the gradient was NaN or infinite, "
                    "or the step too large), so it "
                    "is not saved; the checkpoints saved before are untouched. Try clip_gradient_norm or a "
                    "lower learning rate",
                    *name, global_step_));
  SessionState state{.global_step = global_step_,
                     .optimizer = optimizer_identity(update_->updater().optimizer()),
                     .seed = settings_.seed,
                     .threads = team_.size(),
                     .logical_replicas = placement_.logical_replicas,
                     .devices = placement_.devices,
                     .processor = computed_by(),
                     .instruction_set = instruction_set(),
                     .arithmetic = description_of(settings_.arithmetic),
                     .learning_rate_multiplier = learning_rate_multiplier_,
                     .loss_scale = update_->updater().loss_scale().state(),
                     .data_cursor = pipeline_->cursor(),
                     .elements_taken = elements_taken_,
                     .hook_states = {},
                     .stage_two = stage_two_ ? stage_two_->save_state() : ""};
  for (const auto& hook : hooks_)
    if (const std::string text = hook->save_state(); !hook->name().empty() && !text.empty())
      state.hook_states[hook->name()] = text;
  Checkpoint checkpoint;
  checkpoint.global_step = global_step_;
  // Variables that only the EVAL side makes stay, should this part of the run have none.
  const bool continued = start_.kind == StartingPoint::Kind::kContinued;
  for (const NamedArray& entry : continued ? store_.all_and_unclaimed() : store_.all())
    checkpoint.variables.push_back({entry.name, entry.value.clone()});
  for (const NamedArray& entry : update_->updater().slots())
    checkpoint.optimizer_slots.push_back({entry.name, entry.value.clone()});
  if (stage_two_ && stage_two_->has_begun())
    checkpoint.optimizer_slots.push_back({std::string(kResidualSlot), stage_two_->method().residual()});
  checkpoint.state = to_checkpoint_state(state);
  writer_->submit(std::move(checkpoint));
  saved_step_ = global_step_;
}

Metrics Trainer::evaluate() {
  if (!evaluator_)
    throw FailedPrecondition(
        "this run has no evaluation side; set inter_mode to EVAL and give input_fn data for EVAL");
  if (in_after_evaluation_)
    throw FailedPrecondition(
        "a hook called Session::evaluate in after_evaluation, which would evaluate without end; use the "
        "metrics it is given");
  const auto may_leave = [this] {  // what is saved already
    return ending_ && ranks_.size() == 1 && interrupted();
  };
  last_evaluation_ = evaluator_->evaluate(may_leave);
  const Metrics numbers = last_evaluation_.numbers;
  in_after_evaluation_ = true;
  for (const auto& hook : hooks_) hook->after_evaluation(*this, numbers);
  in_after_evaluation_ = false;
  return numbers;
}

std::optional<metrics::Direction> Trainer::direction(std::string_view metric) const {
  return direction_of(evaluator_ ? evaluator_->spec() : compiler_->for_signature(dataset_->signature()).spec,
                      metric);
}

// What a step takes, known before the first one. Batches, and an evaluation's arena, come on top.
std::string Trainer::describe_memory(const CompiledModel& model) const {
  constexpr double kMebibyte = 1 << 20;
  const PlanStatistics& plan = model.plan->statistics();
  const auto mebibytes = [&](size_t bytes) { return static_cast<double>(bytes) / kMebibyte; };
  size_t slots = 0, variables = 0;
  for (const NamedArray& slot : update_->updater().slots()) slots += slot.value.bytes();
  for (const NamedArray& variable : store_.all()) variables += variable.value.bytes();
  const auto lanes = static_cast<size_t>(placement_.lanes);
  return fmt::format(
      "memory {:.1f} MiB: arena {:.1f}, gradients {:.1f}, results {:.1f}{}, variables {:.1f}, optimizer "
      "{:.1f}, constants {:.1f}",
      mebibytes(lanes * (plan.arena_bytes + plan.gradient_bytes + plan.result_bytes) + variables + slots +
                plan.constant_bytes),
      mebibytes(plan.arena_bytes), mebibytes(plan.gradient_bytes), mebibytes(plan.result_bytes),
      lanes > 1 ? fmt::format(" (these in each of {} lanes)", lanes) : "", mebibytes(variables),
      mebibytes(slots), mebibytes(plan.constant_bytes));
}

void Trainer::mention_left_out_step() const {
  if (ranks_.rank() != 0) return;
  const LossScale& scale = update_->updater().loss_scale();
  log_warning(
      fmt::format("the gradients of global step {} are not finite: the step is left out ({} so far); the "
                  "loss scale is {} now",
                  global_step_, scale.skipped_steps(), scale.scale()));
}

void Trainer::set_variable(std::string_view name, const Array& value) {
  Array variable = store_.get(name);
  if (variable.type() != value.type())
    throw InvalidArgument(fmt::format("the variable '{}' is {} and cannot take a value of {}", name,
                                      to_string(variable.type()), to_string(value.type())));
  std::memcpy(variable.data(), value.data(), value.bytes());
  if (update_) update_->refresh(name);
}

double Trainer::learning_rate() const {
  return update_->updater().learning_rate(global_step_, steps_per_epoch_) * learning_rate_multiplier_ *
         learning_rate_scale_;
}

void Trainer::set_learning_rate_multiplier(double multiplier) {
  if (!std::isfinite(multiplier) || multiplier < 0)
    throw InvalidArgument(fmt::format("a learning-rate multiplier is finite and >= 0, got {}", multiplier));
  learning_rate_multiplier_ = multiplier;
}

std::vector<std::string> Trainer::variable_names() const {
  std::vector<std::string> names;
  for (const NamedArray& entry : store_.all()) names.push_back(entry.name);
  return names;
}

void Trainer::make_update() {
  const bool continued = start_.kind == StartingPoint::Kind::kContinued;
  const std::vector<NamedArray> slots =
      continued ? start_.checkpoint.optimizer_slots : std::vector<NamedArray>();
  update_ = make_variable_update(
      settings_.update_scheme, store_, placement_.lanes, ranks_,
      [&](ParameterUpdater::VariableOf variable, bool of_process) {
        std::unique_ptr<Optimizer> optimizer = settings_.optimizer_fn();
        if (continued) require_same_optimizer(restored_.optimizer, *optimizer, start_.path);
        return std::make_unique<ParameterUpdater>(
            std::move(optimizer), std::move(variable), slots, team_,
            of_process ? LossScale(settings_.loss_scale, restored_.loss_scale) : LossScale());
      });
}

void Trainer::write_step_profile() {
  const NetworkCosts costs = measure_network(ranks_);
  if (ranks_.rank() != 0) return;
  step_->timing().write_profile(settings_.step_profile, {.ranks = ranks_.size(),
                                                         .samples = step_->samples(),
                                                         .latency_s = costs.latency_s,
                                                         .message_work_s = costs.message_work_s});
}

void Trainer::print_summary() const {
  console_.print(format_summary({.steps = global_step_ - first_step_,
                                 .global_step = global_step_,
                                 .samples = samples_,
                                 .seconds = total_seconds_,
                                 .data_seconds = data_seconds_,
                                 .compute_seconds = compute_seconds_,
                                 .sending_seconds = ranks_.size() > 1 ? step_->timing().sending_seconds() : 0,
                                 .exposed_seconds = step_->timing().exposed_seconds(),
                                 .peak_memory_bytes = peak_memory_bytes(),
                                 .evaluations = evaluation_summary_->values().summaries(),
                                 .batches = best_batches_.summaries()}));
  if (const int64_t skipped = update_->updater().loss_scale().skipped_steps(); skipped > 0)
    console_.print(fmt::format("{} step{} of the run left out: gradients that were not finite", skipped,
                               skipped == 1 ? "" : "s"));
  console_.print(fmt::format("stopped because {}", stop_reason_));
  if (!writer_ || !writer_->last_saved()) return;
  const std::string metrics_file =
      settings_.save_summary_steps > 0 ? settings_.log_dir + "/metrics.jsonl, " : "";
  console_.print(fmt::format(
      "logs:        {2}{0}/configuration.yaml\n"
      "checkpoint:  {1}\n"
      "next:        mox checkpoint show {1}\n"
      "             the same program with --run_mode=eval, or with a larger max_number_of_steps or "
      "max_epochs to train on",
      settings_.log_dir, *writer_->last_saved(), metrics_file));
}

}  // namespace mox::internal
