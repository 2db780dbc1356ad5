// The hooks that come with the framework. `mox::run` adds the usual ones by itself (stop-at-step, logging,
// metrics file, checkpoints, NaN guard, evaluation); the others are for ModelSpec::hooks or RunSpec::hooks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "moxing/hooks/hook.h"
#include "moxing/hooks/interval.h"

namespace mox {

// Stops when global_step reaches `last_step`.
std::shared_ptr<Hook> stop_at_step_hook(int64_t last_step);

struct LoggingHookOptions {
  int64_t every_n_steps = 10;  // by global step; the first step of a start is logged too
  bool live_line = true;       // a progress line with ETA, on a terminal only
  double every_seconds = 0;    // in the place of the steps, or beside them; 0: not by time
  int64_t every_n_epochs = 0;  // the same by passes over the training data
};
// "step: 10(global step: 10)  sample/sec: 42.2  loss: 3.977  accuracy: 0.188" on stdout; the live line on
// stderr.
std::shared_ptr<Hook> logging_hook(const LoggingHookOptions& options);

// Appends {"step", "samples_per_second", "learning_rate", metrics...} as one JSON object a line to
// log_dir/metrics.jsonl, and evaluations with "evaluation": true and "samples", how many were measured. After
// a resume, lines of steps beyond the restored one are cut off. A file of more than 64 MiB is
// thinned, which is said: the older a step, the fewer lines of its time stay; of evaluations, too, only where
// nearly all of it is theirs. Of the ranks of a job rank 0 writes it.
std::shared_ptr<Hook> metrics_file_hook(int64_t every_n_steps);
std::shared_ptr<Hook> metrics_file_hook(const Interval& interval);

struct CheckpointHookOptions {
  int64_t every_n_steps = 0;   // by global step; 0: not by steps
  double every_seconds = 600;  // 0: not by time
  int64_t every_n_epochs = 0;  // 0: not by passes over the training data
};
// Saves by steps, by time, by epochs, and at the end of a run that did not fail.
std::shared_ptr<Hook> checkpoint_hook(const CheckpointHookOptions& options);

// Throws NumericError, naming the step and the value, as soon as the loss is NaN or infinite; nothing is
// saved after it.
std::shared_ptr<Hook> nan_guard_hook();

// Evaluates every n steps (0: only at the end), reports the metrics and calls after_evaluation of all hooks.
std::shared_ptr<Hook> evaluation_hook(int64_t every_n_steps);
std::shared_ptr<Hook> evaluation_hook(const Interval& interval);

// Calls `report(steps_per_second, samples_per_second, global_step)` every n steps, measured since
// the last report.
std::shared_ptr<Hook> step_timer_hook(
    int64_t every_n_steps,
    std::function<void(double steps_per_second, double samples_per_second, int64_t global_step)> report);

// Which metric is watched and what counts as better. Needs evaluations during training (inter_mode EVAL with
// eval_every_n_steps > 0): a run without an EVAL side is refused with ConfigError before its first
// step, as is a metric that no evaluation gives, and with InvalidArgument where it is not known which way the
// metric gets better. A value of log_info that is no mean over samples is followed with
// a warning (Session::require_evaluated).
struct MonitorOptions {
  std::string metric = "loss";
  std::optional<bool> larger_is_better = {};  // not given: what Session::direction knows of the metric
  // how much better the value must be to count; >= 0. NaN and infinity are never better
  double min_change = 0;
  int64_t patience = 3;  // evaluations without improvement that are waited for; >= 1
};
// Requests a stop after `patience` evaluations without improvement. The state of the best evaluation is kept
// by keep_best_hook (the options keep_best.*); regular checkpoints are the newest alone. A run that was
// stopped so and is started again stops at once; with more patience it goes on. On other data it counts anew.
std::shared_ptr<Hook> early_stopping_hook(const MonitorOptions& options);

// Multiplies the learning rate by `factor` after `patience` evaluations without improvement, down to a
// multiplier of `min_multiplier`, then waits anew.
std::shared_ptr<Hook> plateau_learning_rate_hook(const MonitorOptions& options, double factor = 0.1,
                                                 double min_multiplier = 1e-4);
struct PlateauOptions {
  MonitorOptions monitor = {};
  double factor = 0.1, min_multiplier = 1e-4;
};

// The state with the best evaluation of a run.
struct KeepBestOptions {
  std::string metric = {};
  std::optional<bool> larger_is_better = {};  // not given: what Session::direction knows of the metric
  // Whether the run ends with it: it is evaluated once more at the end, and evaluations and predictions from
  // the run's log_dir take it.
  bool restore = false;
};
// Keeps the variables of the best evaluation so far in log_dir/best (best_checkpoint.h), in memory if there
// is no log_dir, and names it at the end; of equal ones the first. A run that is continued goes on with what
// it has kept, unless that is of other evaluation data; a best state of another run is refused with
// FailedPrecondition. Needs evaluations, and throws as with MonitorOptions. Of a job rank 0 writes.
std::shared_ptr<Hook> keep_best_hook(const KeepBestOptions& options);

// Before the first step, every variable of all ranks becomes that of `root`. Ranks begin with equal variables
// anyway; this is for programs that change them by a hook on one rank. Its name
// is Horovod's. NOLINTNEXTLINE(readability-identifier-naming)
std::shared_ptr<Hook> BroadcastGlobalVariablesHook(int root = 0);

}  // namespace mox
