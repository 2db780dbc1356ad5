// Predictor: a trained model at hand, without a run.
//
//   mox::Predictor predictor("runs/a", model_fn);              // a log_dir, or one of its checkpoints
//   mox::OutputBatch answer = predictor.predict({{image}});    // image: [samples, ...]
//   float first = answer.array("probabilities").values<float>()[0];
//
// The same model function as in training is called, with ModeKeys::PREDICT, for each batch size that occurs.
// It sees as many inputs as `predict` is given: of a model that takes {image, label} in training, those that
// PREDICT needs.
//
// The answers have the same bits as those of run_mode predict with batches of the same sizes, with the same
// precision, conv_algorithm and conv_error, on a machine of the same instructions and with as many threads.
//
// Where kernels cut their sums by the size of a batch, other sizes may change the last bits.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "moxing/model/model_spec.h"
#include "moxing/prediction/output_batch.h"

namespace mox {

struct PredictorOptions {
  // That compute one call. Several calls at the same time take as many each. >= 1. Other work on their cores
  // is not noticed, as a run does: where there is some, fewer are often faster
  int threads = 1;
  // "fp32" or "bf16", as the option `precision` of a run
  std::string precision = "fp32";
  // "auto" or "direct", and a number from 0 to 0.01, as the options of these names of a run: which
  // convolutions take Winograd's method. "measured" is "auto" here: nothing is measured for answers
  std::string conv_algorithm = "auto";
  double conv_error = 0.01;
  // Compiled models are kept for this many batch sizes, those that were used last; >= 1. A batch size that
  // has none is compiled first, which takes longer than many predictions
  size_t kept_batch_sizes = 16;
};

// Threads: all functions may be called from several threads at once; calls compute at the same time, each
// with memory of its own (which is kept for later calls).
class Predictor {
 public:
  // `checkpoint`: a checkpoint, or a log_dir, whose latest is taken, or its best state (keep_best.restore).
  // Does not need mox::init, unless the model function reads flags. Throws NotFound for a checkpoint that
  // does not exist, DataError for a damaged one, InvalidArgument for options out of range.
  Predictor(const std::string& checkpoint, ModelFn model_fn, PredictorOptions options = {});
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  // The values of output_info for a batch: `components` are its inputs, of which the first extent is the
  // number of samples, any number >= 1. The arrays of the answer are the caller's. Throws InvalidArgument for
  // components without samples or with different numbers of them; NotFound, naming both, where the model has
  // variables that the checkpoint has not; FailedPrecondition where the system refuses the threads, which
  // each calling thread has of its own; and what the model function throws.
  OutputBatch predict(std::span<const Array> components) const;

  // Compiles the model for batches of these types now, so that the first prediction is as fast as the others.
  // Throws as predict.
  void prepare(const std::vector<TensorType>& components) const;

  const std::string& checkpoint() const;  // the path of the one that was read
  int64_t global_step() const;            // its step

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace mox
