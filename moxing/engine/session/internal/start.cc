#include "moxing/engine/session/internal/start.h"

#include <fmt/format.h>

#include "moxing/engine/session/internal/training/device_trial.h"
#include "moxing/engine/session/internal/training/distribution_settings.h"
#include "moxing/engine/session/internal/training/warm_start.h"
#include "moxing/job/facts.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/interruption/interruption.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

// The one place where a run's models learn how they compute.
void settle_arithmetic_of(Start& start, int training_threads = 0) {
  start.settings.arithmetic =
      settle_arithmetic(job(), start.settings.arithmetic,
                        {start.point.path, start.restored.instruction_set, start.restored.arithmetic},
                        start.settings.distribution.allow_inexact, training_threads);
}

// The seed is part of what a run is: a continued run keeps the one it began with.
uint64_t effective_seed(const Start& start) {
  const uint64_t configured = start.settings.seed;
  if (!start.is_continued()) return configured;
  if (start.restored.seed != configured)
    log_warning(fmt::format("seed {} is not used: the run in '{}' began with seed {} and goes on with it",
                            configured, start.point.path, start.restored.seed));
  return start.restored.seed;
}

void restore_variables(Start& start) {
  const std::string& path = start.point.path;
  const TrainingState& restored = start.restored;
  switch (start.point.kind) {
    case StartingPoint::Kind::kInitial:
      break;
    case StartingPoint::Kind::kContinued:
      start.store.restore(start.point.checkpoint.variables);
      start.store.require_restored(path);
      log_info(fmt::format("continuing from '{}' at global step {}", path, restored.global_step));
      mention_processor_of(path, restored.processor, computed_by());
      break;
    case StartingPoint::Kind::kWarmStart:
      start.store.restore(start.point.checkpoint.variables);
      if (start.settings.initial.restore.initialises_other_shapes) start.store.initialise_other_shapes();
      log_info(fmt::format("variables from '{}'; training begins at step 0", path));
      break;
  }
}

}  // namespace

Start start_training(const RunSpec& spec, const RunSettings& settings) {
  Start start;
  start.settings = settings;
  const bool saves = job().rank() == 0 && !settings.places.log_dir.empty() && !settings.print_plan;
  if (saves) start.lock = std::make_shared<RunLock>(settings.places.log_dir);
  if (!settings.print_plan) start.point = find_starting_point(settings);
  if (start.is_continued()) start.restored = from_checkpoint_state(start.point.checkpoint, start.point.path);
  try {
    settle_arithmetic_of(start, settings.cores.threads);
    if (settings.cores.threads_are_automatic)
      start.settings.cores.threads = choose_threads(spec, start.settings, start.point, start.restored, job());
    if (settings.cores.devices == kAutomaticDevices)
      start.settings.cores.devices = choose_devices(spec, start.settings, start.point, start.restored, job());
  } catch (const Interrupted&) {
    // The run ends at its model's first node, and knows its step by then.
    if (settings.cores.devices == kAutomaticDevices) start.settings.cores.devices = 1;
  }
  start.placement = placement_of(start.settings, start.point, start.restored);
  start.settings.seed = effective_seed(start);
  start.store = VariableStore(start.settings.seed);
  start.learning_rate_scale = learning_rate_scale(start.settings, start.placement);
  set_job_step(start.restored.global_step);
  restore_variables(start);
  return start;
}

Start start_pass(const RunSettings& settings) {
  Start start;
  start.settings = settings;
  settle_arithmetic_of(start);
  start.store = VariableStore(settings.seed);
  if (settings.print_plan) return start;
  start.point = find_starting_point(settings);
  if (start.point.kind == StartingPoint::Kind::kInitial)
    throw ConfigError(
        fmt::format("run_mode {} needs trained variables, but log_dir ('{}') holds no checkpoint and "
                    "checkpoint_path is not set; train first, or name a checkpoint with --checkpoint_path",
                    to_string(settings.run_mode), settings.places.log_dir));
  start.restored.global_step = start.point.checkpoint.global_step;
  start.store.restore(start.point.checkpoint.variables);
  start.store.require_restored(start.point.path);
  try {
    start.restored.data_cursor = from_checkpoint_state(start.point.checkpoint, start.point.path).data_cursor;
  } catch (const DataError&) {
    // Variables alone will do, without what the training knew.
  }
  start.point.checkpoint = {};
  log_info(fmt::format("variables from '{}' (global step {})", start.point.path, start.restored.global_step));
  return start;
}

}  // namespace mox::internal
