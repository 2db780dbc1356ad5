// precision, recall, f1 and the table of all three.
#include <fmt/format.h>

#include "moxing/metrics/internal/decision_counts.h"
#include "moxing/metrics/internal/parts.h"
#include "moxing/metrics/metrics.h"
#include "runtime/base/error.h"

namespace mox::metrics {
namespace {

using internal::ClassCounts;
using internal::ClassMeasure;
using internal::DecisionProblem;

Metric decision_metric(const char* name, ClassMeasure measure, const Tensor& scores, const Tensor& labels,
                       const DecisionOptions& options, SourceLocation where) {
  const DecisionProblem problem =
      internal::decision_problem(name, scores, labels, options.class_weights, options.class_names, where);
  internal::require_weights(name, options.weights, scores, where);
  internal::require_threshold(name, problem, options.threshold, where);
  const Average average = internal::average_of(name, options.average, problem, where);
  return {
      .inputs = {scores, labels},
      .weights = options.weights,
      .counts = problem.counts(),
      .direction = Direction::kLargerIsBetter,
      .add = [problem, threshold = options.threshold](
                 const Sample& sample,
                 State& state) { internal::count_decisions(problem, threshold, sample, state); },
      .result = [problem, measure, average, missing = options.if_undefined](const State& state) -> Result {
        const auto classes = internal::class_counts(problem, state);
        if (average != Average::kPerClass) return internal::averaged(measure, average, missing, classes);
        std::vector<std::pair<std::string, double>> numbers;
        for (size_t i = 0; i < classes.size(); ++i)
          numbers.emplace_back(problem.class_names[i], (classes[i].*measure)(missing));
        return {std::move(numbers)};
      },
      .parts = average == Average::kPerClass ? problem.class_names : internal::one_number()};
}

constexpr struct {
  const char* name;
  ClassMeasure measure;
} kMeasures[] = {
    {"precision", &ClassCounts::precision}, {"recall", &ClassCounts::recall}, {"f1", &ClassCounts::f1}};

Table table_of(const DecisionProblem& problem, const std::vector<ClassCounts>& classes, double missing) {
  Table table{.columns = {"precision", "recall", "f1", "samples"}};
  double samples = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    std::vector<double> row;
    for (const auto& [name, measure] : kMeasures) row.push_back((classes[i].*measure)(missing));
    row.push_back(classes[i].labelled);
    samples += classes[i].labelled;
    table.rows.emplace_back(problem.class_names[i], std::move(row));
  }
  for (const auto& [title, average] :
       {std::pair{"macro mean", Average::kMacro}, std::pair{"weighted mean", Average::kWeighted}}) {
    std::vector<double> row;
    for (const auto& [name, measure] : kMeasures)
      row.push_back(internal::averaged(measure, average, missing, classes));
    row.push_back(samples);
    table.rows.emplace_back(title, std::move(row));
  }
  return table;
}

}  // namespace

Metric precision(const Tensor& scores, const Tensor& labels, const DecisionOptions& options,
                 SourceLocation where) {
  return decision_metric("precision", &ClassCounts::precision, scores, labels, options, where);
}

Metric recall(const Tensor& scores, const Tensor& labels, const DecisionOptions& options,
              SourceLocation where) {
  return decision_metric("recall", &ClassCounts::recall, scores, labels, options, where);
}

Metric f1(const Tensor& scores, const Tensor& labels, const DecisionOptions& options, SourceLocation where) {
  return decision_metric("f1", &ClassCounts::f1, scores, labels, options, where);
}

Metric per_class_table(const Tensor& scores, const Tensor& labels, const DecisionOptions& options,
                       SourceLocation where) {
  Metric metric = decision_metric("per_class_table", &ClassCounts::f1, scores, labels, options, where);
  const DecisionProblem problem = internal::decision_problem(
      "per_class_table", scores, labels, options.class_weights, options.class_names, where);
  const Average average = internal::average_of("per_class_table", options.average, problem, where);
  if (average == Average::kPerClass)
    throw InvalidArgument(
        "metrics::per_class_table shows each class anyway; its average is of its numbers, and not kPerClass");
  metric.result = [problem, average, missing = options.if_undefined](const State& state) -> Result {
    const auto classes = internal::class_counts(problem, state);
    std::vector<std::pair<std::string, double>> numbers;
    for (const auto& [name, measure] : kMeasures)
      numbers.emplace_back(name, internal::averaged(measure, average, missing, classes));
    return {std::move(numbers), table_of(problem, classes, missing)};
  };
  metric.parts.emplace();
  for (const auto& [name, measure] : kMeasures) metric.parts->emplace_back(name);
  return metric;
}

}  // namespace mox::metrics
