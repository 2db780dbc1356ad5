// What a model function takes and returns.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "moxing/metrics/metric.h"
#include "moxing/model/mode_keys.h"
#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"
#include "runtime/graph/tensor.h"

namespace mox {

class Hook;

// The components of the batch as symbolic tensors; the first extent of each is the number of samples.
class Inputs {
 public:
  explicit Inputs(std::vector<Tensor> components) : components_(std::move(components)) {}

  size_t size() const { return components_.size(); }
  // Throws InvalidArgument if there is no such component.
  const Tensor& at(size_t index, SourceLocation where = SourceLocation::current()) const;
  const Tensor& operator[](size_t index) const { return at(index); }

  // All `Count` components at once: `auto [images, labels] = inputs.take<2>();`
  // Throws InvalidArgument if the data set has another number of them.
  template <size_t Count>
  std::array<Tensor, Count> take(SourceLocation where = SourceLocation::current()) const {
    require_count(Count, where);
    std::array<Tensor, Count> tensors;
    for (size_t i = 0; i < Count; ++i) tensors[i] = components_[i];
    return tensors;
  }

 private:
  void require_count(size_t count, SourceLocation where) const;

  std::vector<Tensor> components_;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct ModelSpec {
  // What is minimised: one floating-point number, the mean over the batch. Needed in TRAIN. The losses in the
  // collection "regularization_losses" (get_variable's regularizer) are added to it by the engine, except
  // those that are part of it already.
  Tensor loss = {};
  // Only variables whose names are in one of these scopes are trained. Empty: all trainable ones.
  // Batch normalisation that is not trained keeps to its moving averages (option frozen_batch_norm).
  std::vector<std::string> var_scopes = {};
  // Numbers that are logged, and averaged over the samples in an evaluation; each a scalar that is a mean
  // over the batch. Kept in this order. Not named step, samples, samples_per_second, learning_rate or
  // evaluation: metrics.jsonl has these already. One that is not seen to be such a mean (a quotient of sums,
  // a root, an area under a curve) is called "NAME (mean of batches)" in an evaluation; better a metric.
  NamedTensors log_info = {};
  // Measures over all samples of an evaluation (moxing/metrics/metrics.h); a training step leaves them out.
  // One with the name of a log_info value takes its place in evaluations.
  metrics::NamedMetrics metrics = {};
  // Which way values of log_info get better, where metrics::direction_of_name does not tell it or tells it
  // wrong: {{"score", mox::metrics::Direction::kLargerIsBetter}}.
  std::vector<std::pair<std::string, metrics::Direction>> directions = {};
  // Values that output_fn gets, one row a sample: the first extent is that of the batch.
  NamedTensors output_info = {};
  // Called around each step of a training run (see hook.h).
  std::vector<std::shared_ptr<Hook>> hooks = {};
};

// Describes the data of a mode. Called once a run and mode.
using InputFn = std::function<Dataset(ModeKeys mode)>;

// Builds the model. Called per mode and batch signature (a smaller last batch is a signature of its own), for
// the first one of TRAIN twice where var_scopes leave out a batch normalisation, so it must build the same
// model each time and keep no tensor from one call to the next.
using ModelFn = std::function<ModelSpec(const Inputs& inputs, ModeKeys mode)>;

}  // namespace mox
