// Passes over the data of EVAL with the current variables.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "moxing/engine/compile/compiled_model.h"
#include "moxing/engine/session/internal/run_settings.h"
#include "moxing/hooks/hook.h"
#include "runtime/replicas/lane_threads.h"

namespace mox::internal {

// What Evaluator::evaluate throws when it was told to give up. No error.
class EvaluationGivenUp : public std::exception {
 public:
  const char* what() const noexcept override { return "the evaluation was given up because of a signal"; }
};

class Evaluator {
 public:
  // `input_fn` is called once, here, and the model is compiled, so that a mistake shows before a training and
  // not after it. Throws FailedPrecondition if the data has no end and no known epoch, or if the ranks of the
  // job, which make theirs together, have different data; and what ModelCompiler::for_signature throws.
  // `lanes` compute, each a batch at a time, with teams like `team`.
  Evaluator(const RunSpec& spec, const RunSettings& settings, VariableStore& store, const Team& team,
            LaneThreads& lanes);

  // The means of log_info over all samples of one epoch: each batch counts with its number of samples, so the
  // last, smaller one is exact. All ranks of the job call it together and get the same: each computes its
  // share of the batches, and they are summed in the order of the data. Throws DataError if there are no
  // samples, or if one rank has more batches than another with the same data would have. Throws
  // EvaluationGivenUp as soon as `give_up`, asked before each batch, says so: for a job of one process.
  Metrics evaluate(const std::function<bool()>& give_up = {});

  // Of the last call.
  int64_t samples() const { return samples_; }
  double data_seconds() const { return data_seconds_; }
  double compute_seconds() const { return compute_seconds_; }

  ModelCompiler& compiler() { return compiler_; }
  const Dataset& dataset() const { return dataset_; }

 private:
  std::vector<std::string> metric_names();
  Metrics means_of(const std::vector<double>& records, const std::vector<std::string>& names);

  Dataset dataset_;
  PipelineOptions pipeline_options_;
  ModelCompiler compiler_;
  LaneThreads& lanes_;
  int64_t samples_ = 0;
  double data_seconds_ = 0, compute_seconds_ = 0;
};

// `input_fn(mode)`, cut to one epoch if it repeats without end, and batched if auto_batch says so.
Dataset one_epoch(const RunSpec& spec, const RunSettings& settings, ModeKeys mode);

// "test loss: 0.3412" and "test accuracy: 0.9123", a line each: what a final evaluation prints on stdout.
std::string format_test_lines(const Metrics& metrics);

}  // namespace mox::internal
