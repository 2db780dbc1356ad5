#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moxing/metrics/internal/decision_problem.h"
#include "moxing/metrics/internal/parts.h"
#include "moxing/metrics/metrics.h"
#include "runtime/base/error.h"

namespace mox::metrics {
namespace {

using internal::DecisionProblem;
using internal::ProblemKind;

bool is_among_largest(const DecisionProblem& problem, const Sample& sample, int64_t k) {
  const auto scores = sample.values[0];
  const double of_label = scores[problem.label_of(sample)];
  if (!std::ranges::all_of(scores, [](double score) { return std::isfinite(score); })) return false;
  return std::ranges::count_if(scores, [&](double score) { return score > of_label; }) < k;
}

bool are_all_right(const DecisionProblem& problem, const Sample& sample, double threshold) {
  const auto scores = sample.values[0];
  bool right = true;
  for (size_t i = 0; i < scores.size(); ++i)
    right &= problem.is_yes(scores[i], threshold) == DecisionProblem::is_positive(sample, i) &&
             std::isfinite(scores[i]);
  return right;
}

}  // namespace

Metric accuracy(const Tensor& scores, const Tensor& labels, const AccuracyOptions& options,
                SourceLocation where) {
  const DecisionProblem problem =
      internal::decision_problem("accuracy", scores, labels, options.class_weights, {}, where);
  internal::require_weights("accuracy", options.weights, scores, where);
  internal::require_threshold("accuracy", problem, options.threshold, where);
  const int64_t classes = problem.classes;
  if (options.k < 1 || options.k > classes || (options.k > 1 && problem.kind != ProblemKind::kOneOfSeveral))
    throw InvalidArgument(fmt::format(
        "metrics::accuracy: k is {}, for scores {}; k > 1 is for one class of several, and at most "
        "their number",
        options.k, to_string(scores)));
  return {.inputs = {scores, labels},
          .weights = options.weights,
          .counts = problem.counts(),
          .direction = Direction::kLargerIsBetter,
          .add =
              [problem, k = options.k, threshold = options.threshold](const Sample& sample, State& state) {
                bool right = false;
                if (problem.kind == ProblemKind::kSeveralDecisions)
                  right = are_all_right(problem, sample, threshold);
                else if (k > 1)
                  right = is_among_largest(problem, sample, k);
                else
                  right = problem.decision_of(sample, threshold) == problem.label_of(sample);
                const double weight = problem.weight_of(sample);
                if (right) state.sum(0).add(weight);
                state.sum(1).add(weight);
              },
          .result = [](const State& state) { return state.sum(0).value() / state.sum(1).value(); },
          .parts = internal::one_number()};
}

Metric top_k_accuracy(const Tensor& scores, const Tensor& labels, int64_t k, AccuracyOptions options,
                      SourceLocation where) {
  options.k = k;
  return accuracy(scores, labels, options, where);
}

}  // namespace mox::metrics
