// Right decisions, decisions and labels of each class, from which precision, recall and F1 follow.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "moxing/metrics/internal/decision_problem.h"
#include "moxing/metrics/metrics.h"

namespace mox::metrics::internal {

struct ClassCounts {
  double right = 0, decided = 0, labelled = 0;  // weights of samples

  bool occurs() const { return decided != 0 || labelled != 0; }
  double precision(double if_undefined) const { return decided == 0 ? if_undefined : right / decided; }
  double recall(double if_undefined) const { return labelled == 0 ? if_undefined : right / labelled; }
  double f1(double if_undefined) const { return occurs() ? 2 * right / (decided + labelled) : if_undefined; }
};
using ClassMeasure = double (ClassCounts::*)(double if_undefined) const;

// Counts a sample into the sums 3 c, 3 c + 1 and 3 c + 2 of class c.
void count_decisions(const DecisionProblem& problem, double threshold, const Sample& sample, State& state);
std::vector<ClassCounts> class_counts(const DecisionProblem& problem, const State& state);

// The measure averaged over classes; not kPerClass or kAutomatic.
double averaged(ClassMeasure measure, Average average, double if_undefined,
                const std::vector<ClassCounts>& classes);

// kAutomatic resolved; throws InvalidArgument for an average that the problem does not have.
Average average_of(const char* metric, Average average, const DecisionProblem& problem, SourceLocation where);

}  // namespace mox::metrics::internal
