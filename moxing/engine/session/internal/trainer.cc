#include "moxing/engine/session/internal/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "moxing/boost/boost_report.h"
#include "moxing/boost/snapshot_hook.h"
#include "moxing/config/options.h"
#include "moxing/engine/session/internal/device_trial.h"
#include "moxing/engine/session/internal/distribution_settings.h"
#include "moxing/engine/session/internal/output_hook.h"
#include "moxing/engine/session/internal/warm_start.h"
#include "moxing/hooks/hooks.h"
#include "moxing/job/facts.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/job/agreement.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

SessionState restored_state(const StartingPoint& start) {
  return start.kind == StartingPoint::Kind::kContinued ? from_checkpoint_state(start.checkpoint, start.path)
                                                       : SessionState();
}

// The seed is part of what a run is: a continued run keeps the one it began with.
uint64_t effective_seed(const StartingPoint& start, const SessionState& restored, uint64_t configured) {
  if (start.kind != StartingPoint::Kind::kContinued) return configured;
  if (restored.seed != configured)
    log_warning(fmt::format("seed {} is not used: the run in '{}' began with seed {} and goes on with it",
                            configured, start.path, restored.seed));
  return restored.seed;
}

// What ranks agree on before anything is compiled; then num_devices auto becomes a number.
const RunSettings& settled(const RunSpec& spec, RunSettings& settings, const StartingPoint& start,
                           const SessionState& restored, Communicator& ranks) {
  settings.arithmetic =
      settle_arithmetic(ranks, settings.arithmetic,
                        {start.path, restored.instruction_set, restored.arithmetic}, settings.allow_inexact);
  if (settings.devices == kAutomaticDevices)
    settings.devices = choose_devices(spec, settings, start, restored, ranks);
  return settings;
}

// Better here than after the training.
void require_place_of_profile(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (::access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) != 0)
    throw IoError(
        fmt::format("step_profile is '{}', which cannot be written: '{}': {}; name a file in a directory "
                    "that this user may write",
                    path, parent, std::strerror(errno)));
}

}  // namespace

Trainer::Trainer(const RunSpec& spec, const RunSettings& settings, Console& console)
    : spec_(spec),
      settings_(settings),
      ranks_(job()),
      console_(console),
      lock_(saves() ? std::make_unique<RunLock>(settings_.log_dir) : nullptr),
      start_(settings_.print_plan ? StartingPoint()
                                  : find_starting_point(settings_)),  // a plan needs no values
      restored_(restored_state(start_)),
      placement_(placement_of(settled(spec_, settings_, start_, restored_, ranks_), start_, restored_)),
      team_(placement_.threads_per_replica),
      entered_(team_),
      store_(settings_.seed = effective_seed(start_, restored_, settings_.seed)),
      learning_rate_scale_(learning_rate_scale(settings_, placement_)) {
  set_job_step(restored_.global_step);
}

Trainer::~Trainer() = default;

RunResult Trainer::run() {
  restore_variables();
  open_data();
  find_last_step();
  make_stage_two();
  make_update();
  if (update_->updater().optimizer().needs_steps_per_epoch() && steps_per_epoch_ == 0)
    throw FailedPrecondition(
        "the learning-rate schedule is written in epochs, but the size of an epoch of input_fn's data is not "
        "known; write "
        "it in steps, or use a data set of known size");
  compiler_ = std::make_unique<ModelCompiler>(
      spec_.model_fn, ModeKeys::TRAIN, store_, team_, settings_.arithmetic,
      [this](ModelBuild& build, const ModelSpec& model) { begin_graph(build, model); }, placement_.lanes,
      [this](int lane, std::string_view name) { return update_->of_lane(lane, name); });
  // Parts have no times of their own, and one copy of the variables to go to.
  const bool in_parts = placement_.logical_replicas == 1 && update_->updater().takes_parts() &&
                        settings_.step_profile.empty() && !settings_.dim_reduce && update_->applies_at_once();
  compiler_->set_training(training_facts_of(settings_, placement_), settings_.normalises_frozen);
  if (in_parts) compiler_->take_gradients_in_parts();
  if (update_->updater().loss_scale().is_on())
    compiler_->scale_loss(update_->updater().loss_scale().variable());
  CompiledModel& model = compiler_->for_signature(dataset_->signature());
  trained_names_ = model.gradient_variables;
  std::ranges::sort(trained_names_);
  report_frozen(settings_.freeze, *model.graph, ranks_.rank() == 0);
  report_restored(start_, store_, ranks_.rank() == 0, saves() ? settings_.log_dir : "");
  start_.checkpoint = {};
  if (settings_.print_plan) {
    console_.print(model.plan->describe());
    return {.global_step = global_step_, .stop_reason = "print_plan"};
  }
  require_agreement(model);
  lanes_ = std::make_unique<LaneThreads>(placement_.lanes, team_);
  step_ = std::make_unique<ReplicatedStep>(
      StepEngine{placement_, ranks_, *compiler_, *lanes_, team_, *update_}, dataset_->signature()[0].shape[0],
      bucket_options(settings_, placement_), in_parts);
  step_->prepare(model);
  prepare_stage_two(model);
  if (saves())
    writer_ = std::make_unique<CheckpointWriter>(
        settings_.log_dir, CheckpointRetention{.keep_last = settings_.keep_checkpoints,
                                               .keep_every_steps = settings_.keep_checkpoint_every_n_steps});
  else if (settings_.log_dir.empty() && ranks_.rank() == 0)
    log_warning("no log_dir is set: nothing of this run is saved (set --log_dir or --train_url)");
  if (!settings_.evaluates && settings_.eval_every_n_steps > 0 && ranks_.rank() == 0)
    log_warning(fmt::format(
        "eval_every_n_steps is {}, but nothing is evaluated: inter_mode is not eval (set --inter_mode=eval)",
        settings_.eval_every_n_steps));
  if (settings_.evaluates) evaluator_ = std::make_unique<Evaluator>(spec_, settings_, store_, team_, *lanes_);

  // A finished run goes through its end once more, in case that a crash came between the last checkpoint and
  // the last evaluation.
  const bool finished = is_finished_already();
  if (finished) request_stop("finished already");
  if (!finished) {
    if (saves()) write_file_atomically(settings_.log_dir + "/configuration.yaml", effective_configuration());
    if (placement_.logical_replicas > 1)
      log_info(fmt::format("{}; a step takes {} samples; the learning rate is {}", placement_.describe(),
                           placement_.logical_replicas * dataset_->signature()[0].shape[0],
                           learning_rate_scale_ == 1
                               ? "as given"
                               : fmt::format("{} times what is given", learning_rate_scale_)));
    log_info(fmt::format("optimizer {}; {} threads; {} instructions in the plan; {}",
                         update_->updater().optimizer().description(), team_.size(),
                         model.plan->statistics().instructions, describe_memory(model)));
  }
  const bool profiles = !settings_.step_profile.empty() && !finished;
  if (profiles && ranks_.rank() == 0) require_place_of_profile(settings_.step_profile);
  train();
  if (!finished) print_summary();
  if (interrupted())
    console_.print(fmt::format("{} ended this run without its last evaluation; {}",
                               signal_.name().empty() ? "a signal to another rank" : signal_.name(),
                               writer_ ? "the same command goes on from here"
                                       : "nothing of it is saved, for want of a log_dir"),
                   Console::Style::kStrong);
  else if (last_evaluation_.samples > 0)
    console_.print(format_test_lines(last_evaluation_), Console::Style::kStrong);
  // Last: what goes wrong here takes nothing from the run.
  if (profiles && !interrupted()) write_step_profile();
  return {.global_step = global_step_,
          .stop_reason = stop_reason_,
          .interrupted = interrupted(),
          .evaluation = last_evaluation_.numbers};
}

void Trainer::restore_variables() {
  switch (start_.kind) {
    case StartingPoint::Kind::kInitial:
      break;
    case StartingPoint::Kind::kContinued:
      global_step_ = first_step_ = saved_step_ = restored_.global_step;
      learning_rate_multiplier_ = restored_.learning_rate_multiplier;
      store_.restore(start_.checkpoint.variables);
      store_.require_restored(start_.path);
      log_info(fmt::format("continuing from '{}' at global step {}", start_.path, global_step_));
      mention_processor_of(start_.path, restored_.processor, computed_by());
      // Some kernels cut their sums by the number of threads, so the last bits depend on it.
      if (restored_.threads != team_.size() && placement_.logical_replicas == 1)
        log_warning(fmt::format(
            "'{}' was computed by {} thread(s) and is continued by {}: the result is as good, but not bit "
            "for bit that of an uninterrupted run; --threads={} makes it so",
            start_.path, restored_.threads, team_.size(), restored_.threads));
      break;
    case StartingPoint::Kind::kWarmStart:
      store_.restore(start_.checkpoint.variables);
      if (settings_.restore.initialises_other_shapes) store_.initialise_other_shapes();
      log_info(fmt::format("variables from '{}' (checkpoint_path); training begins at step 0", start_.path));
      break;
  }
}

void Trainer::begin_graph(ModelBuild& build, const ModelSpec& spec) {
  if (!hooks_are_complete_) {
    hooks_are_complete_ = true;
    for (const auto& [name, tensor] : spec.log_info) {
      log_names_.push_back(name);
      log_directions_.push_back(direction_of(spec, name));
    }
    add_hooks(spec.hooks);
  }
  for (const auto& hook : hooks_) hook->begin(build);
}

void Trainer::add_hooks(const std::vector<std::shared_ptr<Hook>>& of_model) {
  hooks_ = of_model;
  hooks_.insert(hooks_.end(), spec_.hooks.begin(), spec_.hooks.end());
  std::erase_if(hooks_, [](const auto& hook) { return hook && !hook->takes_part_in(ModeKeys::TRAIN); });
  hooks_.push_back(nan_guard_hook());
  if (last_step_ > 0) hooks_.push_back(stop_at_step_hook(last_step_));
  if (settings_.log_every_n_steps > 0)
    hooks_.push_back(logging_hook({.every_n_steps = settings_.log_every_n_steps}));
  if (settings_.save_summary_steps > 0 && saves())
    hooks_.push_back(metrics_file_hook(settings_.save_summary_steps));
  if (spec_.output_fn && settings_.output_every_n_steps > 0)
    hooks_.push_back(output_hook(spec_.output_fn, settings_.output_every_n_steps));
  if (settings_.evaluates) {
    hooks_.push_back(evaluation_summary_);
    hooks_.push_back(evaluation_hook(settings_.eval_every_n_steps));
  }
  if (settings_.snapshots) {
    SnapshotHookOptions options = *settings_.snapshots;
    if (settings_.dim_reduce)  // those of stage 1
      options.until_step =
          boost::StageTwo::steps_of_stage_one(settings_.dim_reduce->from_epoch, steps_per_epoch_);
    if (!settings_.dim_reduce || options.until_step > 0) hooks_.push_back(snapshot_hook(options));
  }
  if (stage_two_) hooks_.push_back(boost::boost_report_hook(*stage_two_));
  if (saves())
    hooks_.push_back(checkpoint_hook({.every_n_steps = settings_.save_model_steps,
                                      .every_seconds = static_cast<double>(settings_.save_model_secs)}));
  std::set<std::string> names;
  for (const auto& hook : hooks_) {
    if (!hook) throw InvalidArgument("a hook in ModelSpec::hooks or RunSpec::hooks is null");
    if (!hook->name().empty() && !names.insert(hook->name()).second)
      throw InvalidArgument(fmt::format(
          "two hooks have the name '{}'; a hook with a state needs a name of its own", hook->name()));
  }
}

bool Trainer::is_finished_already() const {
  if (start_.kind != StartingPoint::Kind::kContinued || last_step_ == 0 || global_step_ < last_step_)
    return false;
  // The run's result, and not a line of the log that a log level could hide.
  console_.print(
      fmt::format(
          "nothing to train: '{}' already holds step {} and the run ends at step {}. To train further, "
          "raise max_number_of_steps or max_epochs; to begin anew, choose another log_dir or delete "
          "this one",
          settings_.log_dir, global_step_, last_step_),
      Console::Style::kStrong);
  return true;
}

void Trainer::train() {
  std::exception_ptr error;
  const auto start = Clock::now();
  try {
    for (const auto& hook : hooks_) {
      auto state = restored_.hook_states.find(hook->name());
      if (!hook->name().empty() && state != restored_.hook_states.end()) hook->restore_state(state->second);
    }
    for (const auto& hook : hooks_) {
      ++entered_hooks_;
      hook->after_create_session(*this);
    }
    if (ranks_.size() > 1) agree_on_stopping();
    while (!stop_requested_) {
      set_job_step(global_step_ + 1);
      if (stage_two_ && stage_two_->is_due(global_step_)) begin_stage_two();
      if (!take_batches()) {
        if (global_step_ == 0)
          throw DataError(
              fmt::format("the data of input_fn(train) has no samples ({})", dataset_->describe()));
        request_stop("the data of input_fn ended");
        if (last_step_ > 0)
          log_warning(
              fmt::format("the data of input_fn ended at step {}, before step {}; add .repeat() to go on",
                          global_step_, last_step_));
        break;
      }
      step();
      agree_on_stopping();
    }
  } catch (...) {
    error = std::current_exception();
    failed_ = true;
  }
  end_hooks(error);
  total_seconds_ = seconds_between(start, Clock::now());
}

// The batches of this process's replicas; at the end of the data fewer, or none. False if no rank has any.
bool Trainer::take_batches() {
  const auto before = Clock::now();
  const auto wanted = static_cast<size_t>(placement_.replicas().size());
  batches_.resize(wanted);
  size_t taken = 0;
  while (taken < wanted && pipeline_->next(&batches_[taken])) ++taken;
  batches_.resize(taken);
  const bool any = step_->begin(batches_);
  data_seconds_ += seconds_between(before, Clock::now());
  return any;
}

void Trainer::step() {
  in_step_ = true;
  for (const auto& hook : hooks_) hook->before_run(*this);
  const auto before = Clock::now();
  step_->run({.seed = settings_.seed,
              .step = global_step_,
              .steps_per_epoch = steps_per_epoch_,
              .learning_rate_multiplier = learning_rate_multiplier_ * learning_rate_scale_});
  ++global_step_;
  elements_taken_ += step_elements_;
  if (step_->was_left_out()) mention_left_out_step();
  if (stage_two_ && stage_two_->wants_to_stop())
    request_stop(
        fmt::format("the line search of step {} failed (dim_reduce.on_failed_search: stop); the step changed "
                    "nothing",
                    global_step_));
  samples_ += step_->samples();
  compute_seconds_ += seconds_between(before, Clock::now());

  for (size_t i = 0; i < log_names_.size(); ++i)
    best_batches_.add(log_names_[i], step_->number(log_names_[i]), log_directions_[i], global_step_);
  for (const auto& hook : hooks_) hook->after_run(*this, *step_);
  in_step_ = false;
  if (std::exchange(save_is_due_, false)) submit_checkpoint();
}

// A signal, or a hook, may have asked one rank alone; all must end after the same step, or before the first
// one.
void Trainer::agree_on_stopping() {
  interrupted_ = signal_.received() != 0;
  if (interrupted_) request_stop(fmt::format("{} was received", signal_.name()));
  if (ranks_.size() == 1) return;
  const auto wishes = ranks_.allgather_equal(interrupted_ ? "2" : stop_requested_ ? "1" : "0");
  for (size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank] != "0") request_stop(fmt::format("rank {} was asked to stop", rank));
    interrupted_ |= wishes[rank] == "2";
  }
}

void Trainer::require_agreement(const CompiledModel& model) const {
  if (ranks_.size() == 1) return;
  JobFacts facts = facts_of_data(*dataset_);
  facts.emplace_back("number of steps", fmt::format("{} to {}", global_step_, last_step_));
  facts.emplace_back("batch size", std::to_string(settings_.batch_size));
  facts.emplace_back("optimizer", update_->updater().optimizer().description());
  facts.emplace_back("instructions in use", to_string(instruction_set()));
  facts.emplace_back("compiled plan", fmt::format("{:016x}", model.plan->fingerprint()));
  facts.emplace_back("placement", fmt::format("{}, {} of {} replicas", placement_.describe(),
                                              placement_.replicas().size(), placement_.logical_replicas));
  internal::require_agreement(ranks_, facts);
  mention_other_processors(ranks_, processor_model());
}

void Trainer::end_hooks(std::exception_ptr error) {
  auto keep_first = [&](const char* what) {  // inside of a handler
    if (!error) {
      error = std::current_exception();
      failed_ = true;
      return;
    }
    log_error(fmt::format("a further error while the run ended: {}", what));
  };
  ending_ = true;
  for (; entered_hooks_ > 0; --entered_hooks_) {
    try {
      hooks_[entered_hooks_ - 1]->end(*this);
    } catch (const EvaluationGivenUp&) {
    } catch (const std::exception& further) {
      keep_first(further.what());
    } catch (...) {
      keep_first("something that is no std::exception was thrown");
    }
  }
  try {
    if (writer_) writer_->wait();
  } catch (const std::exception& further) {
    keep_first(further.what());
  }
  console_.remove_progress();
  if (error) std::rethrow_exception(error);
}

}  // namespace mox::internal
