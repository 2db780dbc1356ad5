#include <numeric>

#include "moxing/metrics/internal/decision_problem.h"
#include "moxing/metrics/internal/parts.h"
#include "moxing/metrics/metrics.h"
#include "runtime/base/error.h"

namespace mox::metrics {

Metric mean(const Tensor& values, const MeanOptions& options, SourceLocation where) {
  if (!values.defined() || values.shape().rank() < 1 || values.shape().elements() == 0)
    throw InvalidArgument("metrics::mean takes values with one row a sample, [batch, ...]");
  internal::require_weights("mean", options.weights, values, where);
  return {.inputs = {values},
          .weights = options.weights,
          .direction = options.direction,
          .add =
              [](const Sample& sample, State& state) {
                const auto row = sample.values[0];
                for (const double value : row) state.sum(0).add_product(sample.weight, value);
                state.sum(1).add_product(sample.weight, row.size());
              },
          .result = [](const State& state) { return state.sum(0).value() / state.sum(1).value(); },
          .parts = internal::one_number()};
}

}  // namespace mox::metrics
