// Passes over the data of EVAL with the current variables.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "moxing/engine/compile/compiled_model.h"
#include "moxing/engine/session/internal/evaluation_state.h"
#include "moxing/engine/session/internal/run_settings.h"
#include "runtime/replicas/lane_threads.h"

namespace mox::internal {

// What Evaluator::evaluate throws when it was told to give up. No error.
class EvaluationGivenUp : public std::exception {
 public:
  const char* what() const noexcept override { return "the evaluation was given up because of a signal"; }
};

// Who follows a pass over data: a run in EVAL or PREDICT with hooks and a progress line.
class PassObserver {
 public:
  virtual ~PassObserver() = default;
  virtual void before_batch() = 0;
  // `model` has just run over a batch of that many samples. False: the pass ends here, on all ranks.
  virtual bool after_batch(CompiledModel& model, int64_t samples) = 0;
};

class Evaluator {
 public:
  // `input_fn` is called once, here, and the model is compiled, so that a mistake shows before a training and
  // not after it. Throws FailedPrecondition as one_epoch, or if the ranks of the job, which make theirs
  // together, have different data; and what ModelCompiler::for_signature throws.
  // `lanes` compute, each a batch at a time, with teams like `team`. `begin`: see ModelCompiler.
  Evaluator(const RunSpec& spec, const RunSettings& settings, VariableStore& store, const Team& team,
            LaneThreads& lanes, std::function<void(ModelBuild&, const ModelSpec&)> begin = {});

  // The means of log_info over all samples of one epoch, or of its first eval_steps batches: each batch
  // counts with its number of samples, so the last, smaller one is exact; and the spec's metrics. All ranks
  // of the job call it together and get the same: each computes its share of the batches, and their values
  // are summed in the order of the data. Throws DataError if there are no samples, or if one rank has more
  // batches than another with the same data would have. Throws EvaluationGivenUp as soon as `give_up`, asked
  // before each batch, says so: for a job of one process. `observer`: with one lane only. `keep`, which goes
  // without an observer, is called on all ranks before the first error, of whichever rank, is thrown and ends
  // the job.
  Evaluation evaluate(const std::function<bool()>& give_up = {}, PassObserver* observer = nullptr,
                      const std::function<void()>& keep = {});

  // Of the last call.
  double data_seconds() const { return data_seconds_; }
  double compute_seconds() const { return compute_seconds_; }

  ModelCompiler& compiler() { return compiler_; }
  const Dataset& dataset() const { return dataset_; }
  // What input_fn gave, cut to one epoch, if it gave samples and not batches.
  const std::optional<Dataset>& samples() const { return samples_; }
  const CompiledModel& model() { return compiler_.for_signature(dataset_.signature()); }
  const ModelSpec& spec() { return model().spec; }
  std::optional<metrics::Direction> direction(std::string_view metric);

 private:
  void share_samples_read(const std::function<void()>& keep) const;
  void evaluate_batches(EvaluationState& state, const std::function<bool()>& give_up, PassObserver* observer);

  std::optional<Dataset> samples_;
  Dataset dataset_;
  PipelineOptions pipeline_options_;
  ModelCompiler compiler_;
  std::optional<ValueDirections> directions_;  // of spec(), once they are asked for
  LaneThreads& lanes_;
  std::set<std::string> without_weight_;  // metrics of which a warning has been given
  double data_seconds_ = 0, compute_seconds_ = 0;
};

// `input_fn(mode)`, cut to one epoch if it repeats without end, batched if auto_batch says so, and cut to the
// first `steps` batches (0: all). Sets `*samples` to what is batched, if that is not done by input_fn. Throws
// Conflict if, with `steps` 0, there is no one epoch in data without end: its size is not known, or a shuffle
// above the repeat mixes it with others.
Dataset one_epoch(const RunSpec& spec, const RunSettings& settings, ModeKeys mode, int64_t steps,
                  std::optional<Dataset>* samples = nullptr);

}  // namespace mox::internal
