#include "moxing/metrics/internal/decision_counts.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/base/error.h"

namespace mox::metrics::internal {

void count_decisions(const DecisionProblem& problem, double threshold, const Sample& sample, State& state) {
  const double weight = problem.weight_of(sample);
  const auto count = [&](size_t index, bool decided, bool labelled) {
    if (decided && labelled) state.sum(3 * index).add(weight);
    if (decided) state.sum(3 * index + 1).add(weight);
    if (labelled) state.sum(3 * index + 2).add(weight);
  };
  if (problem.kind == ProblemKind::kSeveralDecisions) {
    for (size_t i = 0; i < problem.classes; ++i) {
      const double score = sample.values[0][i];
      count(i, std::isfinite(score) && problem.is_yes(score, threshold),
            DecisionProblem::is_positive(sample, i));
    }
    return;
  }
  const size_t label = problem.label_of(sample);
  const auto decision = problem.decision_of(sample, threshold);
  if (decision && *decision != label) count(*decision, true, false);
  count(label, decision == label, true);
}

std::vector<ClassCounts> class_counts(const DecisionProblem& problem, const State& state) {
  std::vector<ClassCounts> classes;
  for (size_t i = 0; i < problem.classes; ++i)
    classes.push_back({state.sum(3 * i).value(), state.sum(3 * i + 1).value(), state.sum(3 * i + 2).value()});
  return classes;
}

double averaged(ClassMeasure measure, Average average, double if_undefined,
                const std::vector<ClassCounts>& classes) {
  if (average == Average::kBinary) return (classes[1].*measure)(if_undefined);
  if (average == Average::kMicro) {
    ClassCounts all;
    for (const ClassCounts& one : classes) {
      all.right += one.right;
      all.decided += one.decided;
      all.labelled += one.labelled;
    }
    return (all.*measure)(if_undefined);
  }
  double sum = 0, weights = 0;
  for (const ClassCounts& one : classes) {
    const double weight = average == Average::kWeighted ? one.labelled : one.occurs() ? 1 : 0;
    if (weight == 0) continue;
    sum += weight * (one.*measure)(if_undefined);
    weights += weight;
  }
  return weights == 0 ? if_undefined : sum / weights;
}

Average average_of(const char* metric, Average average, const DecisionProblem& problem,
                   SourceLocation where) {
  const bool binary = problem.kind == ProblemKind::kOneDecision;
  if (average == Average::kAutomatic) return binary ? Average::kBinary : Average::kMacro;
  if (average == Average::kBinary && !binary)
    throw InvalidArgument(fmt::format(
        "metrics::{} ({}:{}): Average::kBinary is for one decision a sample; these are {} classes: "
        "take kMacro, kMicro, kWeighted or kPerClass",
        metric, where.file_name(), where.line(), problem.classes));
  return average;
}

}  // namespace mox::metrics::internal
