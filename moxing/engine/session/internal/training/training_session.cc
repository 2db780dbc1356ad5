#include "moxing/engine/session/internal/training/training_session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <set>

#include "moxing/boost/boost_report.h"
#include "moxing/boost/snapshot_hook.h"
#include "moxing/engine/session/internal/output_hook.h"
#include "moxing/engine/session/internal/training/failing_together.h"
#include "moxing/hooks/evaluation_line.h"
#include "moxing/hooks/hooks.h"
#include "moxing/hooks/metric_names.h"
#include "moxing/job/facts.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/refusals/out_of_memory.h"

namespace mox::internal {

TrainingSession::TrainingSession(Training& training, const StopSignal& signal)
    : HookedSession(training.spec, training.start, training.console),
      training_(training),
      signal_(signal),
      global_step_(training.start.restored.global_step),
      kept_for_good_(training.start.settings.intervals.keep, training.data->steps_per_epoch()),
      learning_rate_multiplier_(training.start.restored.learning_rate_multiplier) {
  if (training.start.is_continued()) saved_step_ = global_step_;
}

void TrainingSession::complete_hooks(std::vector<std::shared_ptr<Hook>>& hooks) {
  HookedSession::complete_hooks(hooks);
  const RunSettings& settings = training_.start.settings;
  const bool saves = training_.start.saves();
  hooks.push_back(nan_guard_hook());
  if (last_step() > 0) hooks.push_back(stop_at_step_hook(last_step()));
  if (const Interval& every = settings.intervals.log; every.any())
    hooks.push_back(logging_hook(
        {.every_n_steps = every.steps, .every_seconds = every.seconds, .every_n_epochs = every.epochs}));
  if (settings.intervals.summary.any() && saves)
    hooks.push_back(metrics_file_hook(settings.intervals.summary));
  if (training_.spec.output_fn && settings.intervals.output.any())
    hooks.push_back(output_hook(training_.spec.output_fn, settings.intervals.output));
  // Before the evaluation: hooks end in the reverse order, and these see the last one.
  for (auto& hook : selection_hooks(settings.selection)) hooks.push_back(std::move(hook));
  if (settings.evaluates) {
    hooks.push_back(evaluation_summary_);
    hooks.push_back(evaluation_hook(settings.intervals.eval));
  }
  if (settings.snapshots) {
    SnapshotHookOptions options = *settings.snapshots;
    if (settings.dim_reduce)  // those of stage 1
      options.until_step = training_.data->step_of_passes(settings.dim_reduce->from_epoch);
    if (!settings.dim_reduce || options.until_step > 0) hooks.push_back(snapshot_hook(options));
  }
  if (boost::StageTwo* stage = training_.stage_two->stage())
    hooks.push_back(boost::boost_report_hook(*stage));
  if (saves)
    hooks.push_back(checkpoint_hook({.every_n_steps = settings.intervals.save.steps,
                                     .every_seconds = settings.intervals.save.seconds,
                                     .every_n_epochs = settings.intervals.save.epochs}));
  std::set<std::string> names;
  for (const auto& hook : hooks)
    if (!hook->name().empty() && !names.insert(hook->name()).second)
      throw InvalidArgument(fmt::format(
          "two hooks have the name '{}'; a hook with a state needs a name of its own", hook->name()));
}

void TrainingSession::set_trained_variables(std::vector<std::string> names) {
  trained_names_ = std::move(names);
  std::ranges::sort(trained_names_);
}

void TrainingSession::begin_step() {
  in_step_ = true;
  before_run();
}

void TrainingSession::count_step(int64_t samples) {
  ++global_step_;
  samples_ += samples;
}

void TrainingSession::end_step(const StepResult& result) {
  after_run(result);
  in_step_ = false;
  if (std::exchange(save_is_due_, false)) submit_checkpoint();
}

bool TrainingSession::interrupted() const {
  return interrupted_ || (training_.ranks.size() == 1 && signal_.received() != 0);
}

void TrainingSession::save_checkpoint() {
  if (!training_.writer) return;
  if (failed())
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

TrainingState TrainingSession::state() const {
  const Start& start = training_.start;
  const ParameterUpdater& updater = training_.scheme->updater();
  // A part of the run that evaluates nothing knows of which data the evaluations before it were.
  const auto evaluated = training_.evaluator ? evaluation_data() : start.restored.evaluation_data;
  TrainingState state{.global_step = global_step_,
                      .optimizer = optimizer_identity(updater.optimizer()),
                      .seed = start.settings.seed,
                      .threads = training_.team.size(),
                      .logical_replicas = start.placement.logical_replicas,
                      .devices = start.placement.devices,
                      .process_threads = start.settings.cores.threads,
                      .processor = computed_by(),
                      .instruction_set = instruction_set(),
                      .arithmetic = description_of(start.settings.arithmetic),
                      .learning_rate_multiplier = learning_rate_multiplier_,
                      .loss_scale = updater.loss_scale().state(),
                      .missed_updates = updater.missed_updates(global_step_),
                      .data_cursor = training_.data->cursor(),
                      .elements_taken = training_.data->elements_taken(),
                      .evaluation_data = evaluated,
                      .evaluation_due = evaluation_is_due_ ? std::optional(global_step_) : std::nullopt,
                      .hook_states = hook_states(),
                      .stage_two = training_.stage_two->state()};
  return state;
}

// A part of the run that is without a hook leaves what that knows to a part that has it again, but for what
// says nothing beside what this part does.
std::map<std::string, std::string> TrainingSession::hook_states() const {
  std::map<std::string, std::string> states = training_.start.restored.hook_states;
  if (evaluation_data_are_others())
    std::erase_if(states, [](const auto& state) { return compares_evaluations(state.first); });
  if (!training_.stage_two->stage()) states.erase("boost_report");  // a stage 2 that follows is another one
  for (const auto& hook : hooks()) {
    if (hook->name().empty()) continue;
    states.erase(hook->name());
    if (const std::string text = hook->save_state(); !text.empty()) states[hook->name()] = text;
  }
  return states;
}

void TrainingSession::save_before_failing(const char* why) {
  if (!training_.writer) return;
  try {
    const bool is_saved = saved_step_ == global_step_;
    submit_checkpoint();
    if (training_.ranks.size() > 1) training_.writer->wait();
    if (!is_saved) log_info(fmt::format("{}; step {} is saved before the run ends", why, global_step_));
  } catch (const std::exception& error) {  // the first error is what ends the run
    log_error(fmt::format("step {} could not be saved: {}", global_step_, error.what()));
  }
}

void TrainingSession::submit_checkpoint() {
  if (saved_step_ == global_step_) return;
  const JobActivity activity("saving a checkpoint");
  const ParameterUpdater& updater = training_.scheme->updater();
  // A finite loss may still have had a gradient that is not, and a continued run would never recover.
  if (const std::string* name = updater.first_not_finite())
    throw NumericError(
        fmt::format("the variable '{}' is not finite after global step {} (the gradient was NaN or infinite, "
                    "or the step too large), so it is not saved; the checkpoints saved before are untouched. "
                    "Try clip_gradient_norm or a lower learning rate",
                    *name, global_step_));
  Checkpoint checkpoint;
  checkpoint.global_step = global_step_;
  checkpoint.keep_for_good =
      kept_for_good_.keeps(passes(global_step_), saved_step_ < 0 ? 0 : passes(saved_step_));
  checkpoint.state = to_checkpoint_state(state());
  copy_arrays(checkpoint);
  training_.writer->submit(std::move(checkpoint));
  saved_step_ = global_step_;
}

void TrainingSession::copy_arrays(Checkpoint& checkpoint) const {
  try {
    // Variables that only the EVAL side makes stay, should this part of the run have none.
    const VariableStore& store = training_.start.store;
    for (const NamedArray& entry : training_.start.is_continued() ? store.all_and_unclaimed() : store.all())
      checkpoint.variables.push_back({entry.name, entry.value.clone()});
    for (const NamedArray& entry : training_.scheme->updater().slots())
      checkpoint.optimizer_slots.push_back({entry.name, entry.value.clone()});
    training_.stage_two->add_slots(&checkpoint.optimizer_slots);
  } catch (...) {
    rethrow_naming_memory(
        [&] {
          return fmt::format(
              "the copy of the variables and of what the optimizer keeps, from which the checkpoint of step "
              "{} is written",
              checkpoint.global_step);
        },
        "raise the limit on memory (ulimit -v, the control group's), or leave more of it: use a smaller "
        "batch_size, choose an optimizer that keeps less, or make the model smaller");
  }
}

void TrainingSession::end_saving() {
  if (training_.writer) training_.writer->wait();
}

Metrics TrainingSession::evaluate() {
  if (!training_.evaluator)
    throw FailedPrecondition(
        "this run has no evaluation side; set inter_mode to EVAL and give input_fn data for EVAL");
  if (in_after_evaluation_)
    throw FailedPrecondition(
        "a hook called Session::evaluate in after_evaluation, which would evaluate without end; use the "
        "metrics it is given");
  const auto may_leave = [this] {  // what is saved already
    return is_ending() && training_.ranks.size() == 1 && interrupted();
  };
  evaluation_is_due_ = true;
  last_evaluation_ = training_.evaluator->evaluate(may_leave, nullptr, [this] {
    // Of a step that is done, of which hooks that come later have not heard.
    save_before_failing("an evaluation has failed");
  });
  require_followed();
  evaluation_is_due_ = false;
  Metrics numbers = last_evaluation_.numbers;
  in_after_evaluation_ = true;
  after_evaluation(numbers);
  in_after_evaluation_ = false;
  return numbers;
}

void TrainingSession::make_up_for_evaluation() {
  if (training_.start.restored.evaluation_due != global_step_ || !can_evaluate() || stop_requested()) return;
  console().print(evaluation_line(global_step_, evaluate()), Console::Style::kStrong);
}

// Which numbers a metric of the program's gives, the first evaluation tells.
void TrainingSession::require_followed() {
  std::vector<std::string> names;
  for (const auto& [name, value] : last_evaluation_.numbers) names.push_back(name);
  for (const auto& [followed, follower] : followed_) {
    if (std::ranges::find(names, followed) != names.end()) continue;
    const ConfigError error(
        fmt::format("{} follows '{}', which the evaluation at global step {} has not given; it gives {}. Let "
                    "it follow one of these (keep_best.metric, early_stopping.metric, plateau.metric, or the "
                    "options of the hook)",
                    follower, followed, global_step_, fmt::join(names, ", ")));
    fail_together(training_.ranks, std::make_exception_ptr(error),
                  [this] { save_before_failing("what is followed is not in the evaluation"); });
  }
}

void TrainingSession::require_evaluated(std::string_view follower, std::string_view metric) {
  if (!training_.evaluator)
    throw FailedPrecondition(
        fmt::format("{} follows '{}' over evaluations, but this run has no evaluation side; set inter_mode "
                    "to EVAL and give input_fn data for EVAL",
                    follower, metric));
  const std::string name =
      evaluated_name(training_.evaluator->model(), fmt::format("{} follows", follower), metric);
  if (!followed_.emplace(name, follower).second || name == metric || !name.ends_with(kMeanOfBatches)) return;
  if (training_.ranks.rank() != 0) return;
  log_warning(fmt::format(
      "{} follows '{}' of log_info, which is not seen to be a mean over samples: its value is the average over "
      "the batches of an evaluation, '{}', and depends on eval_batch_size ({} here). One of "
      "ModelSpec::metrics (mox::metrics has areas under curves, F1, roots and others) is exact",
      follower, metric, name, training_.evaluator->dataset().signature()[0].shape[0]));
}

std::optional<metrics::Direction> TrainingSession::direction(std::string_view metric) const {
  return training_.evaluator ? training_.evaluator->direction(metric) : HookedSession::direction(metric);
}

void TrainingSession::set_variable(std::string_view name, const Array& value) {
  HookedSession::set_variable(name, value);
  training_.scheme->refresh(name);
}

double TrainingSession::learning_rate_factor() const {
  return learning_rate_multiplier_ * training_.start.learning_rate_scale;
}

double TrainingSession::learning_rate() const {
  return training_.scheme->updater().learning_rate(global_step_,
                                                   training_.data->steps_per_epoch_until(global_step_)) *
         learning_rate_multiplier_ * training_.start.learning_rate_scale;
}

void TrainingSession::set_learning_rate_multiplier(double multiplier) {
  if (!std::isfinite(multiplier) || multiplier < 0)
    throw InvalidArgument(fmt::format("a learning-rate multiplier is finite and >= 0, got {}", multiplier));
  learning_rate_multiplier_ = multiplier;
}

}  // namespace mox::internal
