// Metric: a measure of a model over a whole data set, as a model function describes it. It is a plain struct,
// so that a program writes its own in a few lines:
//
//   mox::metrics::Metric relative_error(const mox::Tensor& predictions, const mox::Tensor& labels) {
//     return {.inputs = {predictions, labels},
//             .direction = mox::metrics::Direction::kSmallerIsBetter,
//             .add = [](const mox::metrics::Sample& sample, mox::metrics::State& state) {
//               const double p = sample.values[0][0], y = sample.values[1][0];
//               state.sum(0).add_product(sample.weight, std::abs(p - y) / std::abs(y));
//               state.sum(1).add(sample.weight);
//             },
//             .result = [](const mox::metrics::State& state) {
//               return state.sum(0).value() / state.sum(1).value();
//             }};
//   }
//
// An evaluation calls `add` once a sample, on whichever thread and rank has computed it, each with a State of
// its own; merges the states; and calls `result` once on the whole. A State holds exact sums and rows that
// are put in order, so that its content, and with it the result, has the same bits for every batch size and
// every number of threads, devices and ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/metrics/direction.h"
#include "moxing/metrics/exact_sum.h"
#include "runtime/graph/tensor.h"
#include "runtime/tensor/array.h"

namespace mox::metrics {

// One sample of one batch.
struct Sample {
  // For each input of the metric the sample's row, flattened, whatever its dtype. NaN and infinities come as
  // they are.
  std::vector<std::span<const double>> values = {};
  double weight = 1;  // of Metric::weights: finite, > 0 (a sample of weight 0 is not shown)
};

// What a metric has gathered.
class State {
 public:
  // The sum of that number; sums up to it are made, as 0, when first mentioned.
  ExactSum& sum(size_t index) {
    if (sums_.size() <= index) sums_.resize(index + 1);
    return sums_[index];
  }
  const ExactSum& sum(size_t index) const;

  // Keeps a row, for what cannot be computed from sums. All rows of a state have one length
  // (InvalidArgument). It costs the memory of the row for each sample, on every rank.
  void keep(std::span<const double> row);
  // The kept rows, one after another, in increasing order (by the first number, then by the second, ...; -0
  // before 0, NaN at the ends) once the state is given to `result`.
  std::span<const double> kept() const { return kept_; }
  size_t row_length() const { return row_length_; }  // 0 before the first

  int64_t samples() const { return samples_; }  // that were shown to `add`
  void count_sample() { ++samples_; }

  void merge(const State& other);
  void sort_kept();

  // As bytes for another process of the same build, and back. Throws DataError for what no state is.
  std::string to_bytes() const;
  static State from_bytes(std::string_view bytes);

 private:
  std::vector<ExactSum> sums_;
  std::vector<double> kept_;
  size_t row_length_ = 0;
  int64_t samples_ = 0;
};

// Numbers with names for both sides: per class, or a confusion matrix.
struct Table {
  std::vector<std::string> columns = {};
  std::vector<std::pair<std::string, std::vector<double>>> rows = {};
};

// What a metric comes to. A number that the data does not define (an area under the curve of one
// class) is NaN.
struct Result {
  // NOLINTNEXTLINE(google-explicit-constructor): a metric's usual end
  Result(double number) : numbers{{"", number}} {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(std::vector<std::pair<std::string, double>> named, Table shown = {})
      : numbers(std::move(named)), table(std::move(shown)) {}

  // Each under the metric's name followed by "/" and its own; "" stands for the metric itself.
  std::vector<std::pair<std::string, double>> numbers;
  Table table;  // without rows: none
};

struct Metric {
  // What `add` sees: each has one row a sample, its first extent is that of the batch.
  std::vector<Tensor> inputs = {};
  // How much each sample counts: [batch] or [batch, 1], >= 0. Undefined: all count 1. Over a weight that is
  // negative or not finite the evaluation ends with InvalidArgument.
  Tensor weights = {};
  // Whether a sample counts at all, for a metric with weights of its own, such as those of classes: one that
  // does not is not shown to `add`, as one of weight 0 is not. Empty: all do.
  std::function<bool(const Sample& sample)> counts = {};
  std::optional<Direction> direction = {};  // of its numbers; empty: it has none, and no best
  std::function<void(const Sample& sample, State& state)> add = {};
  std::function<Result(const State& state)> result = {};
  // The names that `result` gives its numbers ("" where it gives one without), if they do not depend on the
  // data: what follows another number of the metric is refused before the first step, and not after the first
  // evaluation. Empty: not known. Who replaces `result` replaces these, too.
  std::optional<std::vector<std::string>> parts = {};
};

using NamedMetrics = std::vector<std::pair<std::string, Metric>>;

// Shows a batch to a metric: `inputs` are the values of its inputs, `weights` those of its weights or
// undefined. `first_sample`: the number of the first one, for messages. Throws InvalidArgument for an array
// without one row a sample or a weight that none can be, and what `add` throws with the sample's number
// before it.
void add_batch(const Metric& metric, std::span<const Array> inputs, const Array& weights,
               int64_t first_sample, State& state);

// The result over all samples that `state` has seen; sorts its rows.
Result result_of(const Metric& metric, State& state);

// What a metric without a graph computes over arrays at hand: for tests, and for programs that have their
// predictions already. `inputs` take the place of metric.inputs.
Result evaluate(const Metric& metric, std::span<const Array> inputs, const Array& weights = {});

}  // namespace mox::metrics
