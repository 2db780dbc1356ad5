#include "moxing/engine/session/internal/training/training.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "moxing/config/options.h"
#include "moxing/engine/session/internal/evaluated_variables.h"
#include "moxing/engine/session/internal/evaluation_state.h"
#include "moxing/engine/session/internal/trained_data.h"
#include "moxing/engine/session/internal/training/distribution_settings.h"
#include "moxing/engine/session/internal/training/training_loop.h"
#include "moxing/engine/session/internal/training/training_report.h"
#include "moxing/engine/session/internal/training/training_session.h"
#include "moxing/engine/session/internal/training/warm_start.h"
#include "moxing/job/facts.h"
#include "runtime/base/conflict.h"
#include "runtime/base/file.h"
#include "runtime/interruption/interruption.h"
#include "runtime/job/agreement.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

std::unique_ptr<VariableScheme> make_scheme(Training& training) {
  Start& start = training.start;
  KeptOptimizer kept;
  if (start.is_continued())
    kept = {start.point.checkpoint.optimizer_slots, start.restored.updates(), start.restored.missed_updates};
  return make_variable_scheme(
      start.settings.distribution.update_scheme, start.store, start.placement.lanes, training.ranks,
      [&](ParameterUpdater::VariableOf variable, bool of_process) {
        std::unique_ptr<Optimizer> optimizer = start.settings.optimizer_fn();
        if (start.is_continued())
          require_same_optimizer(start.restored.optimizer, *optimizer, start.point.path);
        return std::make_unique<ParameterUpdater>(
            std::move(optimizer), std::move(variable), kept, training.team,
            of_process ? LossScale(start.settings.loss_scaling.scale, start.restored.loss_scale,
                                   start.settings.loss_scaling.drops_overflows)
                       : LossScale());
      });
}

// The data, and what changes the variables: what can be wrong with them shows before anything is compiled.
void open(Training& training, const RunSpec& spec) {
  training.data.emplace(spec, training.start);
  training.stage_two.emplace(training.start, training.ranks);
  training.scheme = make_scheme(training);
  if (training.scheme->updater().optimizer().needs_steps_per_epoch() && training.data->steps_per_epoch() == 0)
    throw Conflict(
        "the learning-rate schedule is written in epochs, but the size of an epoch of input_fn's data is not "
        "known; write it in steps, or use a data set of known size");
}

// Parts have no times of their own, and one copy of the variables to go to.
bool takes_gradients_in_parts(const Training& training) {
  const RunSettings& settings = training.start.settings;
  return training.start.placement.logical_replicas == 1 && training.scheme->updater().takes_parts() &&
         settings.step_profile.empty() && !settings.dim_reduce && training.scheme->applies_at_once();
}

CompiledModel& compile(Training& training, TrainingSession& session) {
  Start& start = training.start;
  training.compiler = std::make_unique<ModelCompiler>(
      training.spec.model_fn, ModeKeys::TRAIN, start.store, training.team, start.settings.arithmetic,
      session.begin(), start.placement.lanes,
      [&training](int lane, std::string_view name) { return training.scheme->of_lane(lane, name); });
  ModelCompiler& compiler = *training.compiler;
  const TrainingFacts facts = training_facts_of(start.settings, start.placement);
  compiler.set_training(facts, start.settings.normalises_frozen);
  if (takes_gradients_in_parts(training)) compiler.take_gradients_in_parts();
  const LossScale& loss_scale = training.scheme->updater().loss_scale();
  if (loss_scale.is_on()) compiler.scale_loss(loss_scale.variable());
  CompiledModel& model = compiler.for_signature(training.data->dataset().signature());
  session.set_trained_variables(model.gradient_variables);
  const std::vector<std::string> restored = restored_variables(start.point, start.store);
  session.set_restored_variables(restored);
  const bool says = training.ranks.rank() == 0;
  report_frozen(start.settings.freeze, *model.graph, says);
  if (says && !start.is_continued()) warn_of_frozen_initial_values(model, facts, restored);
  report_restored(start.point, start.store, says, start.saves() ? start.settings.places.log_dir : "");
  start.point.checkpoint = {};
  return model;
}

void require_agreement_on(const Training& training, const CompiledModel& model) {
  Communicator& ranks = training.ranks;
  if (ranks.size() == 1) return;
  const Placement& placement = training.start.placement;
  JobFacts facts = facts_of_data(training.data->dataset());
  facts.emplace_back("number of steps", fmt::format("{} to {}", training.start.restored.global_step,
                                                    training.data->last_step()));
  facts.emplace_back("batch size", std::to_string(training.start.settings.data.batch_size));
  facts.emplace_back("optimizer", training.scheme->updater().optimizer().description());
  facts.emplace_back("instructions in use", to_string(instruction_set()));
  facts.emplace_back("compiled plan", fmt::format("{:016x}", model.plan->fingerprint()));
  facts.emplace_back("placement", fmt::format("{}, {} of {} replicas", placement.describe(),
                                              placement.replicas().size(), placement.logical_replicas));
  require_agreement(ranks, facts);
  mention_other_processors(ranks, processor_model());
}

// Before the first step, not after the first evaluation, and in the words of the options.
void require_followed_metrics(const SelectionSettings& selection, const CompiledModel& evaluated) {
  if (selection.keep_best) evaluated_name(evaluated, "keep_best.metric is", selection.keep_best->metric);
  if (selection.early_stopping)
    evaluated_name(evaluated, "early_stopping.metric is", selection.early_stopping->metric);
  if (selection.plateau) evaluated_name(evaluated, "plateau.metric is", selection.plateau->monitor.metric);
}

// The lanes, and what works on them.
void prepare(Training& training, CompiledModel& model) {
  Start& start = training.start;
  const RunSettings& settings = start.settings;
  training.lanes = std::make_unique<LaneThreads>(start.placement.lanes, training.team);
  training.step = std::make_unique<ReplicatedStep>(training.engine(), training.data->full_batch(),
                                                   bucket_options(settings, start.placement),
                                                   takes_gradients_in_parts(training));
  training.step->prepare(model);
  training.stage_two->prepare(model, start, *training.data);
  if (start.saves())
    training.writer = std::make_unique<CheckpointWriter>(
        settings.places.log_dir, CheckpointRetention{.keep_last = settings.keep_checkpoints,
                                                     .keep_every_steps = settings.intervals.keep.steps});
  mention_idle_settings(training);
  if (!settings.evaluates) return;
  const std::vector<std::string> restored = start.store.unclaimed();
  training.evaluator =
      std::make_unique<Evaluator>(training.spec, settings, start.store, training.team, *training.lanes);
  require_directed_values(model.spec, training.evaluator->spec());
  require_directed_values(training.evaluator->spec(), model.spec);
  warn_of_untrained_variables(*model.graph, *training.evaluator->model().graph, restored,
                              training.ranks.rank() == 0);
  require_followed_metrics(settings.selection, training.evaluator->model());
  training.evaluated_data = find_evaluated_data(start, *training.evaluator);
  if (training.data->samples() && training.evaluator->samples())
    warn_of_trained_data(*training.data->samples(), *training.evaluator->samples());
}

bool is_finished_already(const Training& training) {
  const int64_t step = training.start.restored.global_step, last_step = training.data->last_step();
  if (!training.start.is_continued() || last_step == 0 || step < last_step) return false;
  // The run's result, and not a line of the log that a log level could hide.
  training.console.print(
      fmt::format(
          "nothing to train: '{}' already holds step {} and the run ends at step {}. To train further, raise "
          "max_number_of_steps or max_epochs; to begin anew, choose another log_dir or delete this one",
          training.start.settings.places.log_dir, step, last_step),
      Console::Style::kStrong);
  return true;
}

// A finished run goes through its end once more, in case that a crash came between the last checkpoint and
// the last evaluation.
RunResult train(Training& training, TrainingSession& session, const CompiledModel& model) {
  const RunSettings& settings = training.start.settings;
  const bool finished = is_finished_already(training);
  if (finished) {
    session.request_stop("finished already");
  } else {
    if (training.start.saves())
      write_file_atomically(settings.places.log_dir + "/configuration.yaml", effective_configuration());
    describe_training(training, model);
  }
  const bool profiles = !settings.step_profile.empty() && !finished;
  if (profiles && training.ranks.rank() == 0) require_place_of_profile(settings.step_profile);
  TrainingLoop loop(training, session);
  loop.run();
  if (!finished) print_summary(training, session, loop);
  print_outcome(training, session);
  // Last: what goes wrong here takes nothing from the run.
  if (profiles && !session.interrupted()) write_step_profile(training);
  return {.global_step = session.global_step(),
          .stop_reason = session.stop_reason(),
          .interrupted = session.interrupted(),
          .evaluation = session.last_evaluation().numbers};
}

RunResult interrupted_before_training(const Training& training, const StopSignal& signal) {
  training.console.print(
      fmt::format("{} ended this run before it trained; the same command begins again", signal.name()),
      Console::Style::kStrong);
  return {.global_step = training.start.restored.global_step,
          .stop_reason = fmt::format("{} was received", signal.name()),
          .interrupted = true};
}

}  // namespace

Training::Training(const RunSpec& spec, Start begun, Console& console)
    : spec(spec),
      console(console),
      ranks(job()),
      start(std::move(begun)),
      team(start.placement.threads_per_replica),
      entered(team) {}

RunResult run_training(const RunSpec& spec, const RunSettings& settings, Console& console,
                       const StopSignal& signal, std::shared_ptr<RunLock>* lock) {
  // Until the first step. Of several ranks each goes on to it, where they agree: others wait for this one.
  std::optional<Interruptible> preparation;
  if (job().size() == 1) preparation.emplace(signal.wish());
  Training training(spec, start_training(spec, settings), console);
  *lock = training.start.lock;
  std::optional<TrainingSession> session;
  try {
    open(training, spec);
    session.emplace(training, signal);
    CompiledModel& model = compile(training, *session);
    if (training.start.settings.print_plan) {
      console.print(model.plan->describe());
      return {.global_step = session->global_step(), .stop_reason = "print_plan"};
    }
    require_agreement_on(training, model);
    prepare(training, model);
    preparation.reset();
    return train(training, *session, model);
  } catch (const Interrupted&) {
    return interrupted_before_training(training, signal);
  } catch (...) {
    job().abandon();  // while what it works on is still there
    throw;
  }
}

}  // namespace mox::internal
