#include "moxing/metrics/internal/decision_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"
#include "runtime/text/unsigned_nan.h"

namespace mox::metrics::internal {
namespace {

// Softmax and sigmoid in float32 leave [0, 1] by less.
constexpr double kRounding = 1e-5;

[[noreturn]] void refuse_metric(const char* metric, SourceLocation where, const std::string& text) {
  throw InvalidArgument(
      fmt::format("metrics::{} ({}:{}): {}", metric, where.file_name(), where.line(), text));
}

bool is_one_a_row(const Shape& shape) { return shape.rank() == 1 || (shape.rank() == 2 && shape[1] == 1); }

}  // namespace

DecisionProblem decision_problem(const char* metric, const Tensor& scores, const Tensor& labels,
                                 std::vector<double> class_weights, std::vector<std::string> class_names,
                                 SourceLocation where) {
  if (!scores.defined() || !labels.defined())
    refuse_metric(metric, where, "scores and labels are needed; one of them is an undefined tensor");
  const Shape &of_scores = scores.shape(), &of_labels = labels.shape();
  const auto refuse_shapes = [&] {
    refuse_metric(
        metric, where,
        fmt::format("the scores are {} and the labels {}; wanted are scores [batch] and labels [batch] "
                    "of one decision, scores [batch, classes] and integer labels [batch] of one class "
                    "of several, or [batch, n] both of several decisions",
                    to_string(scores), to_string(labels)));
  };
  if (of_scores.rank() < 1 || of_labels.rank() < 1 || of_scores[0] != of_labels[0]) refuse_shapes();
  DecisionProblem problem{
      .class_weights = std::move(class_weights),
      .class_names = std::move(class_names),
      .metric = fmt::format("metrics::{} ({}:{})", metric, where.file_name(), where.line())};
  if (is_one_a_row(of_scores) && is_one_a_row(of_labels)) {
    problem.kind = ProblemKind::kOneDecision;
    problem.classes = 2;
  } else if (of_scores.rank() == 2 && is_one_a_row(of_labels)) {
    problem.kind = ProblemKind::kOneOfSeveral;
    problem.classes = of_scores[1];
    if (is_floating(labels.dtype()))
      refuse_metric(
          metric, where,
          fmt::format("the labels are {}; classes are integers (int32 or int64)", to_string(labels)));
  } else if (of_scores.rank() == 2 && of_scores == of_labels) {
    problem.kind = ProblemKind::kSeveralDecisions;
    problem.classes = of_scores[1];
    if (!problem.class_weights.empty())
      refuse_metric(metric, where,
                    "with several decisions a sample has no single class; give weights instead");
  } else {
    refuse_shapes();
  }
  if (!problem.class_weights.empty() && problem.class_weights.size() != problem.classes)
    refuse_metric(metric, where,
                  fmt::format("there are {} class_weights for {} classes", problem.class_weights.size(),
                              problem.classes));
  for (const double weight : problem.class_weights)
    if (!(weight >= 0) || !std::isfinite(weight))
      refuse_metric(metric, where,
                    fmt::format("a class weight is {}; weights are finite and >= 0", unsigned_nan(weight)));
  if (problem.class_names.empty())
    for (size_t i = 0; i < problem.classes; ++i) problem.class_names.push_back(std::to_string(i));
  if (problem.class_names.size() != problem.classes)
    refuse_metric(
        metric, where,
        fmt::format("there are {} class_names for {} classes", problem.class_names.size(), problem.classes));
  const auto is_zero = [](double weight) { return weight == 0; };
  if (!problem.class_weights.empty() && std::ranges::all_of(problem.class_weights, is_zero))
    refuse_metric(
        metric, where,
        fmt::format("all class_weights are 0 (of {}), so that no sample counts; one above 0 is needed",
                    mox::internal::first_names(problem.class_names)));
  return problem;
}

void refuse_several_decisions(const char* metric, const DecisionProblem& problem, SourceLocation where) {
  if (problem.kind == ProblemKind::kSeveralDecisions)
    refuse_metric(metric, where, "labels [batch, n] are of several decisions, for which it is not defined");
}

void require_threshold(const char* metric, const DecisionProblem& problem, double threshold,
                       SourceLocation where) {
  if (std::isnan(threshold)) refuse_metric(metric, where, "the threshold is NaN; a number is expected");
  constexpr double kUnlessGiven = 0.5;
  if (problem.kind == ProblemKind::kOneOfSeveral && threshold != kUnlessGiven)
    refuse_metric(metric, where,
                  fmt::format("the threshold is {}, but of {} classes the one that scores highest is decided "
                              "for: it would have no effect; leave it out",
                              threshold, problem.classes));
}

void require_weights(const char* metric, const Tensor& weights, const Tensor& like, SourceLocation where) {
  if (weights.defined() && (!is_one_a_row(weights.shape()) || weights.shape()[0] != like.shape()[0]))
    refuse_metric(
        metric, where,
        fmt::format("the weights are {}; wanted is one a sample, [{}]", to_string(weights), like.shape()[0]));
}

size_t DecisionProblem::label_of(const Sample& sample) const {
  const double label = sample.values[1][0];
  if (!(label >= 0) || label >= classes || label != std::floor(label))
    throw InvalidArgument(fmt::format("the label is {}; labels are whole numbers from 0 to {}",
                                      unsigned_nan(label), classes - 1));
  return label;
}

bool DecisionProblem::is_positive(const Sample& sample, size_t index) {
  const double label = sample.values[1][index];
  if (label != 0 && label != 1)
    throw InvalidArgument(fmt::format("the label of a decision is {}; it is 0 or 1", unsigned_nan(label)));
  return label == 1;
}

bool DecisionProblem::is_yes(double score, double threshold) const {
  const bool is_no_probability = std::isfinite(score) && (score < -kRounding || score > 1 + kRounding);
  if (is_no_probability && threshold > 0 && threshold < 1)
    std::call_once(*has_warned, [&] {
      log_warning(
          fmt::format("{}: a score is {:g}, which is no probability, and scores of {:g} or more "
                      "decide for the label 1. Of logits those above 0 do: set threshold = 0, or "
                      "give sigmoid(logits)",
                      metric, score, threshold));
    });
  return score >= threshold;
}

std::optional<size_t> DecisionProblem::decision_of(const Sample& sample, double threshold) const {
  const auto scores = sample.values[0];
  for (const double score : scores)
    if (!std::isfinite(score)) return std::nullopt;
  if (kind == ProblemKind::kOneDecision) return is_yes(scores[0], threshold) ? 1 : 0;
  return std::ranges::max_element(scores) - scores.begin();
}

double DecisionProblem::weight_of(const Sample& sample) const {
  return class_weights.empty() ? sample.weight : sample.weight * class_weights[label_of(sample)];
}

std::function<bool(const Sample& sample)> DecisionProblem::counts() const {
  if (std::ranges::find(class_weights, 0.0) == class_weights.end()) return {};
  return [problem = *this](const Sample& sample) { return problem.weight_of(sample) != 0; };
}

double DecisionProblem::probability_of(const Sample& sample, size_t index) const {
  const double p = sample.values[0][index];
  if (p < -kRounding || p > 1 + kRounding)
    throw InvalidArgument(
        fmt::format("a probability is {}, outside of [0, 1]; give softmax(logits) or sigmoid(logits)", p));
  return std::isnan(p) ? p : std::clamp(p, 0.0, 1.0);
}

}  // namespace mox::metrics::internal
