// Measures of probabilities: log_loss, brier_score, expected_calibration_error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "moxing/metrics/internal/decision_problem.h"
#include "moxing/metrics/internal/parts.h"
#include "moxing/metrics/metrics.h"
#include "runtime/base/error.h"

namespace mox::metrics {
namespace {

using internal::DecisionProblem;
using internal::ProblemKind;

double away_from_certainty(double p) {
  constexpr double kLeast = std::numeric_limits<double>::epsilon();
  return std::isnan(p) ? p : std::clamp(p, kLeast, 1 - kLeast);
}

// Of what was the case.
double log_loss_of(const DecisionProblem& problem, const Sample& sample) {
  const size_t label = problem.label_of(sample);
  if (problem.kind == ProblemKind::kOneDecision) {
    const double p = away_from_certainty(problem.probability_of(sample, 0));
    return label == 1 ? -std::log(p) : -std::log(1 - p);
  }
  double sum = 0;
  for (size_t i = 0; i < problem.classes; ++i) sum += away_from_certainty(problem.probability_of(sample, i));
  return -std::log(away_from_certainty(problem.probability_of(sample, label)) / sum);
}

double brier_of(const DecisionProblem& problem, const Sample& sample) {
  const size_t label = problem.label_of(sample);
  const auto squared = [&](size_t index, bool is_case) {
    const double difference = problem.probability_of(sample, index) - (is_case ? 1 : 0);
    return difference * difference;
  };
  if (problem.kind == ProblemKind::kOneDecision) return squared(0, label == 1);
  double sum = 0;
  for (size_t i = 0; i < problem.classes; ++i) sum += squared(i, i == label);
  return sum;
}

Metric probability_metric(const char* name, double (*of_sample)(const DecisionProblem&, const Sample&),
                          const Tensor& probabilities, const Tensor& labels,
                          const ProbabilityOptions& options, SourceLocation where) {
  const DecisionProblem problem =
      internal::decision_problem(name, probabilities, labels, options.class_weights, {}, where);
  internal::refuse_several_decisions(name, problem, where);
  internal::require_weights(name, options.weights, probabilities, where);
  return {.inputs = {probabilities, labels},
          .weights = options.weights,
          .counts = problem.counts(),
          .direction = Direction::kSmallerIsBetter,
          .add =
              [problem, of_sample](const Sample& sample, State& state) {
                const double weight = problem.weight_of(sample);
                if (weight == 0) return;
                state.sum(0).add_product(weight, of_sample(problem, sample));
                state.sum(1).add(weight);
              },
          .result = [](const State& state) { return state.sum(0).value() / state.sum(1).value(); },
          .parts = internal::one_number()};
}

// Bin b is (b / bins, (b + 1) / bins]; 0 goes into the first.
size_t bin_of(double confidence, int64_t bins) {
  const double position = std::ceil(confidence * bins) - 1;
  return std::clamp(position, 0.0, static_cast<double>(bins - 1));
}

}  // namespace

Metric log_loss(const Tensor& probabilities, const Tensor& labels, const ProbabilityOptions& options,
                SourceLocation where) {
  return probability_metric("log_loss", log_loss_of, probabilities, labels, options, where);
}

Metric brier_score(const Tensor& probabilities, const Tensor& labels, const ProbabilityOptions& options,
                   SourceLocation where) {
  return probability_metric("brier_score", brier_of, probabilities, labels, options, where);
}

Metric expected_calibration_error(const Tensor& probabilities, const Tensor& labels,
                                  const CalibrationOptions& options, SourceLocation where) {
  constexpr const char* kName = "expected_calibration_error";
  const DecisionProblem problem =
      internal::decision_problem(kName, probabilities, labels, options.class_weights, {}, where);
  internal::refuse_several_decisions(kName, problem, where);
  internal::require_weights(kName, options.weights, probabilities, where);
  const int64_t bins = options.bins;
  if (bins < 1) throw InvalidArgument(fmt::format("metrics::{}: bins is {}, below 1", kName, bins));
  // Sum 0: the weight of all samples; sums 1 + 2 b, 2 + 2 b: of bin b, what was right and the confidence.
  return {.inputs = {probabilities, labels},
          .weights = options.weights,
          .counts = problem.counts(),
          .direction = Direction::kSmallerIsBetter,
          .add =
              [problem, bins](const Sample& sample, State& state) {
                const double weight = problem.weight_of(sample);
                const size_t label = problem.label_of(sample);
                const bool binary = problem.kind == ProblemKind::kOneDecision;
                const auto decision = binary ? 1 : problem.decision_of(sample, 0);
                const double confidence = decision ? problem.probability_of(sample, binary ? 0 : *decision)
                                                   : std::numeric_limits<double>::quiet_NaN();
                state.sum(0).add(std::isnan(confidence) ? confidence : weight);
                if (std::isnan(confidence)) return;
                const size_t bin = bin_of(confidence, bins);
                if (decision == label) state.sum(1 + 2 * bin).add(weight);
                state.sum(2 + 2 * bin).add_product(weight, confidence);
              },
          .result =
              [bins](const State& state) {
                double sum = 0;
                for (size_t bin = 0; bin < static_cast<size_t>(bins); ++bin)
                  sum += std::abs(state.sum(1 + 2 * bin).value() - state.sum(2 + 2 * bin).value());
                return sum / state.sum(0).value();
              },
          .parts = internal::one_number()};
}

}  // namespace mox::metrics
