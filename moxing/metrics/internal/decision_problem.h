// How scores and labels belong together, for all metrics of decisions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "moxing/metrics/metric.h"

namespace mox::metrics::internal {

enum class ProblemKind { kOneDecision, kOneOfSeveral, kSeveralDecisions };

struct DecisionProblem {
  ProblemKind kind = ProblemKind::kOneDecision;
  size_t classes = 2;  // with several decisions: how many there are
  std::vector<double> class_weights;
  std::vector<std::string> class_names;
  std::string metric;  // its name and place, for messages
  std::shared_ptr<std::once_flag> has_warned = std::make_shared<std::once_flag>();  // of all copies

  // The class of the sample's label; throws InvalidArgument for a number that is none. Not
  // with several decisions.
  size_t label_of(const Sample& sample) const;
  // Whether the label number `index` is 1; throws InvalidArgument for one that is neither 0 nor 1.
  static bool is_positive(const Sample& sample, size_t index);
  // Whether a score decides for the label 1. Scores beyond [0, 1], which no threshold of probabilities is
  // for, are a warning, the first alone (of each shape of batches, for which metrics are made).
  bool is_yes(double score, double threshold) const;
  // The class decided for, the first of equal scores; empty if a score is not finite. Not
  // with several decisions.
  std::optional<size_t> decision_of(const Sample& sample, double threshold) const;
  // Of the sample, with that of its label's class.
  double weight_of(const Sample& sample) const;
  // Metric::counts of a metric of this problem: not what lies in a class of weight 0.
  std::function<bool(const Sample& sample)> counts() const;
  // The probability of the class; throws InvalidArgument outside of [0, 1], by more than rounding.
  double probability_of(const Sample& sample, size_t index) const;
};

// Throws InvalidArgument for shapes and dtypes that do not fit, and for class weights or names of another
// number than the classes. `metric`: its name, for messages.
DecisionProblem decision_problem(const char* metric, const Tensor& scores, const Tensor& labels,
                                 std::vector<double> class_weights, std::vector<std::string> class_names,
                                 SourceLocation where);
void refuse_several_decisions(const char* metric, const DecisionProblem& problem, SourceLocation where);

// Throws InvalidArgument for NaN, which no score is above or below, and for a threshold that is given where
// the largest of several scores decides.
void require_threshold(const char* metric, const DecisionProblem& problem, double threshold,
                       SourceLocation where);

// Throws InvalidArgument for weights that are not one number a row of `like`.
void require_weights(const char* metric, const Tensor& weights, const Tensor& like, SourceLocation where);

}  // namespace mox::metrics::internal
