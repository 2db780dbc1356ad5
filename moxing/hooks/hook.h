// Hooks: code that runs around the steps of a run. Logging, checkpoints, evaluation and stopping are
// hooks themselves (hooks.h), written with nothing but this interface.
//
// Order of calls:
//
//   for each graph that model_fn builds:   hook.begin(build)                 // may ask for more values
//   variables restored or initialised
//   hook.after_create_session(session)
//   while not stopped:
//     hook.before_run(session)
//     one step: forward, backward, update
//     hook.after_run(session, result)
//   hook.end(session)                      // also when a step, or another hook, has thrown
//
// Whenever a hook has called session.evaluate(), in whichever of these, after_evaluation of
// all hooks follows.
//
// A run in EVAL or PREDICT makes the same calls, for each of its batches before_run and after_run, and in
// EVAL after_evaluation before end. There global_step is that of the checkpoint, and what belongs to training
// (evaluate, save_checkpoint, the learning rate's multiplier) throws FailedPrecondition. Of the hooks that
// come with the framework none takes part in it.
//
// Within each call, hooks run in the order: those of ModelSpec::hooks, those of RunSpec::hooks, the engine's
// own; `end` runs in the reverse order. ModelSpec::hooks are those that the first call of model_fn has
// returned. `end` is called for exactly those hooks whose after_create_session was entered. An exception from
// a hook ends the run with that error; one from `end` after another error is logged, and the
// first is reported.
//
// A hook with a memory (a best value, a counter) overrides save_state and restore_state, so that a resumed
// run goes on bitwise equal. A start of the run without the hook leaves its state in the checkpoints. All
// calls come from the training thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/metrics/direction.h"
#include "moxing/model/mode_keys.h"
#include "runtime/graph/tensor.h"

namespace mox {

class Console;

using Metrics = std::vector<std::pair<std::string, double>>;

// The graph of the training step, before it is compiled.
class ModelBuild {
 public:
  virtual ~ModelBuild() = default;
  // Has `tensor` computed in every step; after_run finds its value under `name`. Throws InvalidArgument if
  // the name is taken by another tensor, or if the tensor belongs to another graph: a hook lives as long as
  // the run and sees each graph, so it finds its tensor anew in each begin (model_fn may put it into a
  // collection; get_collection works in begin).
  virtual void fetch(const std::string& name, const Tensor& tensor) = 0;
  // In TRAIN the loss that is minimised, regularisation included; else ModelSpec::loss, which
  // may be undefined.
  virtual const Tensor& loss() const = 0;
  virtual std::vector<std::string> output_names() const = 0;  // of ModelSpec::output_info, in order
};

// The value that every step of training computes: the loss that is minimised, regularisation included.
inline constexpr std::string_view kTrainedLoss = "trained_loss";

// What a step has computed. Valid until the next step.
class StepResult {
 public:
  virtual ~StepResult() = default;
  // A fetched value: "trained_loss" (the loss that is minimised, in TRAIN), every name of log_info and (not
  // in EVAL) output_info, and what hooks asked for. Throws NotFound for another name, naming
  // those that exist.
  virtual const Array& array(std::string_view name) const = 0;
  double number(std::string_view name) const { return array(name).item(); }
  virtual int64_t samples() const = 0;  // in this step's batch
};

// The run, as hooks see it.
class Session {
 public:
  virtual ~Session() = default;

  virtual ModeKeys mode() const = 0;  // what the run does; TRAIN also during the evaluations of a training
  // Steps done, earlier starts included; in after_run the step just done counts.
  virtual int64_t global_step() const = 0;
  virtual int64_t first_step() const = 0;  // the global step at which this start began
  virtual int64_t last_step() const = 0;   // the global step at which the run ends; 0 if there is no limit
  // Steps in one pass over the training data: a fraction where batches run across the ends of passes (10
  // samples in batches of 4, repeated: 2.5). 0 if the size of the data set is not known.
  virtual double steps_per_epoch() const = 0;
  // Passes over the training data that the steps up to the global step `step` have taken, from first_step()
  // on: step / steps_per_epoch(), unless earlier starts had steps of another number of samples
  // (allow_inexact). 0 if the size of the data set is not known.
  virtual double passes(int64_t step) const = 0;
  virtual int64_t samples() const = 0;  // trained on since this start
  // "" if the run keeps nothing. Of the ranks of a job rank 0 alone needs to see it: what writes there does
  // so on rank 0.
  virtual const std::string& log_dir() const = 0;
  // The checkpoint that the run goes on from, starts from or reads: a directory, or a file of weights.
  // "" for none.
  virtual const std::string& checkpoint() const = 0;
  virtual const std::vector<std::string>& log_names() const = 0;  // of ModelSpec::log_info, in order

  // Ends the run after this step, in good order. The first reason given is reported.
  virtual void request_stop(std::string reason) = 0;
  virtual bool stop_requested() const = 0;
  // In `end`: whether the run ends because of an error (nothing should be saved or evaluated then).
  virtual bool failed() const = 0;
  // Whether a signal (SIGINT, SIGTERM, SIGHUP, SIGUSR1) has asked the process to end: `end` should leave out
  // what takes long.
  virtual bool interrupted() const = 0;
  // Where lines for a person go.
  virtual Console& console() = 0;

  // Saves the state after the current step under log_dir, off the training thread. In before_run and
  // after_run that is when every hook has seen the step, so that all of the state belongs to one moment. A
  // no-op without a log_dir, or if this step is saved already. The run ends with IoError if an earlier save
  // has failed, with NumericError if a trained variable is not finite (nothing is saved then). Throws
  // FailedPrecondition once the run has failed.
  virtual void save_checkpoint() = 0;

  // A pass over input_fn(EVAL) with the current variables: the means of log_info over its samples, and the
  // numbers of the metrics ("name", or "name/part" where a metric has several). Throws
  // FailedPrecondition if the run has no EVAL side (inter_mode is not EVAL), and in after_evaluation. Called
  // by `end`, it is given up when a signal comes, unless the job has several processes: an exception that
  // `end` should let through leaves the hook, and is no error.
  virtual Metrics evaluate() = 0;
  virtual bool can_evaluate() const = 0;
  // Whether evaluations come between steps, not at the end alone: by eval_every_n_steps, _secs or _epochs, or
  // by a hook that says so (Hook::evaluates).
  virtual bool evaluates_between_steps() const = 0;
  // What `follower` calls before the first step if it follows `metric` over evaluations. Throws ConfigError,
  // naming those that there are, for one that no evaluation gives. A value of log_info that is no mean over
  // samples comes as "metric (mean of batches)": a warning, once a run, says what is followed. Throws
  // FailedPrecondition if the run has no EVAL side.
  virtual void require_evaluated(std::string_view follower, std::string_view metric) = 0;
  // That the last evaluation has measured, those of all ranks; 0 before the first.
  virtual int64_t evaluated_samples() const = 0;
  // Which way the number of that name gets better: what ModelSpec::directions says, the metric itself, or the
  // name. Empty: that is not known.
  virtual std::optional<metrics::Direction> direction(std::string_view metric) const = 0;

  virtual std::vector<std::string> variable_names() const = 0;  // sorted
  // Those that training changes: trainable, inside ModelSpec::var_scopes, and reached by the loss. Sorted.
  virtual std::vector<std::string> trained_variable_names() const = 0;
  // Those of the model in the run's own mode whose values came from `checkpoint`. Sorted.
  virtual std::vector<std::string> restored_variable_names() const = 0;
  virtual Array variable(std::string_view name) const = 0;  // a copy; NotFound names the nearest
  virtual void set_variable(std::string_view name, const Array& value) = 0;

  virtual double learning_rate() const = 0;  // of the next step, multiplier included
  virtual double learning_rate_multiplier() const = 0;
  virtual void set_learning_rate_multiplier(double multiplier) = 0;  // kept in checkpoints
};

class Hook {
 public:
  virtual ~Hook() = default;

  // Whether the hook is called in runs of that mode (run_mode). Evaluations during a training belong to it.
  virtual bool takes_part_in(ModeKeys) const { return true; }
  // Whether it calls Session::evaluate between steps. What follows evaluations, such as early stopping, is
  // refused in a run that has none.
  virtual bool evaluates() const { return false; }
  // Identifies the hook's state in a checkpoint; unique among a run's hooks that have a state.
  virtual std::string name() const { return ""; }
  virtual void begin(ModelBuild&) {}
  virtual void after_create_session(Session&) {}
  virtual void before_run(Session&) {}
  virtual void after_run(Session&, const StepResult&) {}
  // After every evaluation during training, whichever hook started it.
  virtual void after_evaluation(Session&, const Metrics&) {}
  virtual void end(Session&) {}

  // JSON text that restore_state understands; "" for a hook without a state.
  virtual std::string save_state() const { return ""; }
  // Called before after_create_session when a checkpoint holds a state under this hook's name. Throws
  // DataError for a text that save_state cannot have written.
  virtual void restore_state(const std::string&) {}
};

// A hook that has nothing to do where nothing is trained.
class TrainingHook : public Hook {
 public:
  bool takes_part_in(ModeKeys mode) const override { return mode == ModeKeys::TRAIN; }
};

}  // namespace mox
