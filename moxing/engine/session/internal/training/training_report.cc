#include "moxing/engine/session/internal/training/training_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <unordered_set>

#include "moxing/hooks/evaluation_data.h"
#include "moxing/job/forecast.h"
#include "moxing/model/penalised_variables.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"
#include "runtime/exec/thread_dependence.h"
#include "runtime/job/network_probe.h"

namespace mox::internal {
namespace {

// What a step takes, known before the first one. Batches, and an evaluation's arena, come on top.
std::string describe_memory(const Training& training, const CompiledModel& model) {
  constexpr double kMebibyte = 1 << 20;
  const PlanStatistics& plan = model.plan->statistics();
  const auto mebibytes = [&](size_t bytes) { return bytes / kMebibyte; };
  size_t slots = 0, variables = 0;
  for (const NamedArray& slot : training.scheme->updater().slots()) slots += slot.value.bytes();
  for (const NamedArray& variable : training.start.store.all()) variables += variable.value.bytes();
  const size_t lanes = training.start.placement.lanes;
  return fmt::format(
      "memory {:.1f} MiB: arena {:.1f}, gradients {:.1f}, results {:.1f}{}, variables {:.1f}, optimizer "
      "{:.1f}, constants {:.1f}",
      mebibytes(lanes * (plan.arena_bytes + plan.gradient_bytes + plan.result_bytes) + variables + slots +
                plan.constant_bytes),
      mebibytes(plan.arena_bytes), mebibytes(plan.gradient_bytes), mebibytes(plan.result_bytes),
      lanes > 1 ? fmt::format(" (these in each of {} lanes)", lanes) : "", mebibytes(variables),
      mebibytes(slots), mebibytes(plan.constant_bytes));
}

// Whether the number of threads decides any bit of the weights.
void mention_threads(const Training& training, const CompiledModel& model) {
  if (thread_dependence_of(*model.plan).is_none()) {
    log_info("threads is free: each instruction of the plan gives the same bits with any number of threads");
    return;
  }
  const Start& start = training.start;
  const int before = start.restored.threads, now = start.placement.threads_per_replica;
  if (start.is_continued() && before != now && start.placement.logical_replicas == 1)
    log_warning(
        fmt::format("'{}' was computed by {} thread(s) and is continued by {}: the result is as good, but "
                    "not bit for bit that of an uninterrupted run; --threads={} makes it so",
                    start.point.path, before, now, before));
}

// Of variables that the loss pulls to zero, and the optimizer again: what was meant once has
// twice the effect.
void warn_of_two_decays(const Training& training, const CompiledModel& model) {
  if (training.ranks.rank() != 0) return;
  const Optimizer& optimizer = training.scheme->updater().optimizer();
  const std::unordered_set<std::string_view> trained(model.gradient_variables.begin(),
                                                     model.gradient_variables.end());
  std::vector<std::string> names;
  double decay = 0;
  for (const Tensor& variable : model.graph->collection(kPenalisedVariables)) {
    const std::string& name = model.graph->spec(variable).name;
    if (!trained.contains(name)) continue;
    const double of_optimizer = optimizer.parameter_settings(name, variable.shape()).weight_decay;
    if (of_optimizer == 0) continue;
    if (names.empty()) decay = of_optimizer;
    names.push_back(name);
  }
  if (names.empty()) return;
  log_warning(fmt::format(
      "{} of the {} trained variables are decayed twice ({}): their regularizer adds a penalty to the loss, and "
      "the optimizer, {}, has a weight decay of {:g} for them. Keep one of the two: leave out the regularizer "
      "(weight_decay of the network in get_model_fn, regularizer of a layer or of get_variable), or the "
      "optimizer's (optimizer.weight_decay=0, or a group of optimizer.groups with weight_decay=0){}",
      names.size(), model.gradient_variables.size(), first_names(names), optimizer.name(), decay,
      optimizer.name() == "adamw" ? ". Of adamw, the optimizer's is the decoupled one" : ""));
}

// Of a model that has nothing but vectors to train, or of which nothing else is trained.
void warn_of_idle_decay(const Training& training, const CompiledModel& model) {
  if (training.ranks.rank() != 0) return;
  const Optimizer& optimizer = training.scheme->updater().optimizer();
  const double of_matrices = optimizer.parameter_settings("weights", {1, 1}).weight_decay;
  const auto is_decayed = [&](const std::string& name) {
    return optimizer.parameter_settings(name, model.graph->find_variable(name).shape()).weight_decay != 0;
  };
  if (of_matrices == 0 || std::ranges::any_of(model.gradient_variables, is_decayed)) return;
  log_warning(fmt::format(
      "the weight decay is {:g}, and none of the {} trained variables ({}) is decayed: unless groups say otherwise, "
      "variables of rank 0 and 1 are not, as biases and what scales and shifts a normalisation. To decay them, too, "
      "set optimizer.groups to \"pattern=* weight_decay={:g}\"",
      of_matrices, model.gradient_variables.size(), first_names(model.gradient_variables), of_matrices));
}

// A plateau that is over, and a learning rate that is given anew, look as if they were all.
void mention_lowered_rate(const Training& training) {
  const Start& start = training.start;
  const double multiplier = start.restored.learning_rate_multiplier;
  if (!start.is_continued() || multiplier == 1 || training.ranks.rank() != 0) return;
  const std::string text = fmt::format(
      "the learning rate is multiplied by {:g}, to which a plateau or a hook had come at global step {}",
      multiplier, start.restored.global_step);
  const bool goes_on =
      start.settings.selection.plateau || std::ranges::any_of(training.spec.hooks, [](const auto& hook) {
        return hook->name().starts_with(kPlateauName);
      });
  if (goes_on)
    log_info(text);
  else
    log_warning(
        fmt::format("{}; plateau.metric is not set now, and that stays so. To be without it train on with "
                    "--checkpoint_path={} in another log_dir, or give a higher optimizer.learning_rate",
                    text, start.point.path));
}

// Of a run that has a stage 2.
void mention_idle_settings_of(const boost::StageTwo& stage, const Training& training) {
  const RunSettings& settings = training.start.settings;
  const int64_t last_step = training.data->last_step();
  if (last_step > 0 && stage.first_step() >= last_step && training.start.restored.global_step < last_step)
    log_warning(
        fmt::format("stage 2 begins after step {}, and the run ends at step {}: it does not come to it "
                    "(dim_reduce.from_epoch; max_epochs, max_number_of_steps)",
                    stage.first_step(), last_step));
  if (settings.dim_reduce->from_epoch > 0) return;
  if (settings.selection.plateau)
    log_warning(
        "plateau.metric is set, but it lowers the optimizer's learning rate, which does not act in stage 2");
  if (settings.snapshots)
    log_warning(
        "snapshots are asked for, but no snapshots are written in stage 2, with which this run begins "
        "(dim_reduce.from_epoch)");
}

// A profile of an earlier run, or nothing.
bool is_replaceable_profile(const std::string& path) {
  constexpr uintmax_t kLargest = 16 << 20;  // what is larger need not be read
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > kLargest) return false;
  try {
    if (bytes > 0) read_step_profile(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void mention_idle_settings(const Training& training) {
  const RunSettings& settings = training.start.settings;
  if (training.ranks.rank() != 0) return;
  if (settings.places.log_dir.empty())
    log_warning("no log_dir is set: nothing of this run is saved (set --log_dir or --train_url)");
  if (!settings.evaluates && settings.intervals.eval.any())
    log_warning(
        "eval_every_n_steps, _secs or _epochs is set, but nothing is evaluated: inter_mode is not eval (set "
        "--inter_mode=eval)");
  if (const boost::StageTwo* stage = training.stage_two->stage()) mention_idle_settings_of(*stage, training);
}

void describe_training(const Training& training, const CompiledModel& model) {
  const Placement& placement = training.start.placement;
  const double scale = training.start.learning_rate_scale;
  if (placement.logical_replicas > 1)
    log_info(fmt::format("{}; a step takes {} samples; the learning rate is {}", placement.describe(),
                         placement.logical_replicas * training.data->full_batch(),
                         scale == 1 ? "as given" : fmt::format("{} times what is given", scale)));
  log_info(fmt::format("optimizer {}; {} threads; {} instructions in the plan; {}",
                       training.scheme->updater().optimizer().description(), training.team.size(),
                       model.plan->statistics().instructions, describe_memory(training, model)));
  mention_lowered_rate(training);
  mention_threads(training, model);
  warn_of_two_decays(training, model);
  warn_of_idle_decay(training, model);
}

void require_place_of_profile(const std::string& path) {
  // Not data, nor a file of the run: a slip would cost what nobody has a second time.
  if (std::error_code absent; std::filesystem::exists(path, absent) && !is_replaceable_profile(path))
    throw InvalidArgument(
        fmt::format("step_profile is '{}', which is there and is no profile of steps, and would be replaced; "
                    "name a file that is not there yet, or an earlier profile",
                    path));
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (::access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) != 0)
    throw InvalidArgument(
        fmt::format("step_profile is '{}', which cannot be written: '{}': {}; name a file in a directory "
                    "that this user may write",
                    path, parent.empty() ? "." : parent, std::strerror(errno)));
}

void write_step_profile(const Training& training) {
  const NetworkCosts costs = measure_network(training.ranks);
  if (training.ranks.rank() != 0) return;
  require_place_of_profile(training.start.settings.step_profile);  // the run has made files of its own since
  training.step->timing().write_profile(training.start.settings.step_profile,
                                        {.ranks = training.ranks.size(),
                                         .samples = training.step->samples(),
                                         .latency_s = costs.latency_s,
                                         .message_work_s = costs.message_work_s});
}

void print_summary(const Training& training, const TrainingSession& session, const TrainingLoop& loop) {
  const StepTiming& timing = training.step->timing();
  Console& console = training.console;
  console.print(format_summary({.steps = session.global_step() - session.first_step(),
                                .global_step = session.global_step(),
                                .samples = session.samples(),
                                .seconds = loop.seconds().total,
                                .data_seconds = loop.seconds().data,
                                .compute_seconds = loop.seconds().compute,
                                .sending_seconds = training.ranks.size() > 1 ? timing.sending_seconds() : 0,
                                .exposed_seconds = timing.exposed_seconds(),
                                .peak_memory_bytes = peak_memory_bytes(),
                                .evaluations = session.evaluations().summaries(),
                                .batches = loop.best_batches().summaries()}));
  if (const int64_t skipped = training.scheme->updater().loss_scale().skipped_steps(); skipped > 0)
    console.print(fmt::format("{} step{} of the run left out: gradients that were not finite", skipped,
                              skipped == 1 ? "" : "s"));
  console.print(fmt::format("stopped because {}", session.stop_reason()));
  if (!training.writer || !training.writer->last_saved()) return;
  const RunSettings& settings = training.start.settings;
  const std::string metrics_file =
      settings.intervals.summary.any() ? settings.places.log_dir + "/metrics.jsonl, " : "";
  console.print(fmt::format(
      "logs:        {2}{0}/configuration.yaml\n"
      "checkpoint:  {1}\n"
      "next:        mox checkpoint show {1}\n"
      "             the same program with --run_mode=eval, or with a larger max_number_of_steps or "
      "max_epochs to train on",
      settings.places.log_dir, *training.writer->last_saved(), metrics_file));
}

void print_outcome(const Training& training, const TrainingSession& session) {
  if (session.interrupted())
    training.console.print(
        fmt::format("{} ended this run without its last evaluation; {}",
                    session.signal_name().empty() ? "a signal to another rank" : session.signal_name(),
                    training.writer ? "the same command goes on from here"
                                    : "nothing of it is saved, for want of a log_dir"),
        Console::Style::kStrong);
  else if (session.last_evaluation().samples > 0)
    training.console.print(format_test_lines(session.last_evaluation()), Console::Style::kStrong);
}

}  // namespace mox::internal
