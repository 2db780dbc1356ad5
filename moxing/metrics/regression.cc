// Measures of predicted numbers: mean_absolute_error, root_mean_squared_error, r2.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "moxing/metrics/internal/decision_problem.h"
#include "moxing/metrics/internal/parts.h"
#include "moxing/metrics/metrics.h"
#include "runtime/base/error.h"

namespace mox::metrics {
namespace {

void require_like(const char* metric, const Tensor& predictions, const Tensor& labels, SourceLocation where) {
  const auto same_rows = [&] {
    const Shape &p = predictions.shape(), &y = labels.shape();
    return p.rank() >= 1 && y.rank() >= 1 && p[0] == y[0] && p.elements() == y.elements() &&
           (p == y || p.elements() == p[0]);
  };
  if (!predictions.defined() || !labels.defined() || !same_rows())
    throw InvalidArgument(fmt::format(
        "metrics::{} ({}:{}): the predictions are {} and the labels {}; wanted is one shape, [batch, ...]",
        metric, where.file_name(), where.line(), predictions.defined() ? to_string(predictions) : "undefined",
        labels.defined() ? to_string(labels) : "undefined"));
}

Metric error_metric(const char* name, const Tensor& predictions, const Tensor& labels,
                    const ErrorOptions& options, Direction direction, SourceLocation where) {
  require_like(name, predictions, labels, where);
  internal::require_weights(name, options.weights, predictions, where);
  return {.inputs = {predictions, labels},
          .weights = options.weights,
          .direction = direction,
          .parts = internal::one_number()};
}

// Twice the digits of a double: differences of large sums keep those that they have.
__extension__ using Wide = __float128;
Wide wide(const ExactSum& sum) { return static_cast<Wide>(sum.value()) + sum.remainder(); }

// Of element e: sums 1 + 3 e and on: of y, y^2 and (y - p)^2, all times the weight, whose sum is number 0.
double r2_of_element(const State& state, size_t element) {
  const Wide weights = wide(state.sum(0)), sum = wide(state.sum(1 + 3 * element)),
             squares = wide(state.sum(2 + 3 * element)), errors = wide(state.sum(3 + 3 * element));
  const Wide spread = weights * squares - sum * sum;
  // What is left of equal labels by rounding at the 106th digit.
  constexpr double kNothing = 0x1p-98;
  if (!std::isfinite(static_cast<double>(spread)) || !std::isfinite(static_cast<double>(errors)))
    return std::numeric_limits<double>::quiet_NaN();
  if (weights == 0) return std::numeric_limits<double>::quiet_NaN();
  if (spread <= weights * squares * kNothing) return errors == 0 ? 1 : 0;
  return 1 - weights * errors / spread;
}

}  // namespace

Metric mean_absolute_error(const Tensor& predictions, const Tensor& labels, const ErrorOptions& options,
                           SourceLocation where) {
  Metric metric =
      error_metric("mean_absolute_error", predictions, labels, options, Direction::kSmallerIsBetter, where);
  metric.add = [](const Sample& sample, State& state) {
    const auto p = sample.values[0], y = sample.values[1];
    for (size_t i = 0; i < p.size(); ++i) state.sum(0).add_product(sample.weight, std::abs(p[i] - y[i]));
    state.sum(1).add_product(sample.weight, p.size());
  };
  metric.result = [](const State& state) { return state.sum(0).value() / state.sum(1).value(); };
  return metric;
}

Metric root_mean_squared_error(const Tensor& predictions, const Tensor& labels, const ErrorOptions& options,
                               SourceLocation where) {
  Metric metric = error_metric("root_mean_squared_error", predictions, labels, options,
                               Direction::kSmallerIsBetter, where);
  metric.add = [](const Sample& sample, State& state) {
    const auto p = sample.values[0], y = sample.values[1];
    for (size_t i = 0; i < p.size(); ++i) state.sum(0).add_product(sample.weight, p[i] - y[i], p[i] - y[i]);
    state.sum(1).add_product(sample.weight, p.size());
  };
  metric.result = [](const State& state) { return std::sqrt(state.sum(0).value() / state.sum(1).value()); };
  return metric;
}

Metric r2(const Tensor& predictions, const Tensor& labels, const ErrorOptions& options,
          SourceLocation where) {
  Metric metric = error_metric("r2", predictions, labels, options, Direction::kLargerIsBetter, where);
  // Of a sample, also where there is none.
  size_t elements = 1;
  for (int axis = 1; axis < predictions.shape().rank(); ++axis) elements *= predictions.shape()[axis];
  metric.add = [](const Sample& sample, State& state) {
    const auto p = sample.values[0], y = sample.values[1];
    state.sum(0).add(sample.weight);
    for (size_t i = 0; i < p.size(); ++i) {
      state.sum(1 + 3 * i).add_product(sample.weight, y[i]);
      state.sum(2 + 3 * i).add_product(sample.weight, y[i], y[i]);
      state.sum(3 + 3 * i).add_product(sample.weight, p[i] - y[i], p[i] - y[i]);
    }
  };
  metric.result = [elements](const State& state) {
    double sum = 0;
    for (size_t i = 0; i < elements; ++i) sum += r2_of_element(state, i);
    return sum / elements;
  };
  return metric;
}

}  // namespace mox::metrics
