#include "moxing/metrics/internal/decision_problem.h"
#include "moxing/metrics/metrics.h"

namespace mox::metrics {
namespace {

double sum_of_all(const std::vector<std::vector<double>>& rows) {
  double sum = 0;
  for (const auto& row : rows)
    for (const double number : row) sum += number;
  return sum;
}

void normalise(Normalisation normalisation, std::vector<std::vector<double>>& rows) {
  const double all = sum_of_all(rows);
  const std::vector<std::vector<double>> counts = rows;
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t c = 0; c < rows[r].size(); ++c) {
      double sum = all;
      if (normalisation == Normalisation::kLabels) {
        sum = sum_of_all({counts[r]});
      } else if (normalisation == Normalisation::kDecisions) {
        sum = 0;
        for (const auto& row : counts) sum += row[c];
      }
      rows[r][c] = sum == 0 ? 0 : counts[r][c] / sum;
    }
}

}  // namespace

Metric confusion_matrix(const Tensor& scores, const Tensor& labels, const ConfusionOptions& options,
                        SourceLocation where) {
  const internal::DecisionProblem problem = internal::decision_problem(
      "confusion_matrix", scores, labels, options.class_weights, options.class_names, where);
  internal::refuse_several_decisions("confusion_matrix", problem, where);
  internal::require_weights("confusion_matrix", options.weights, scores, where);
  internal::require_threshold("confusion_matrix", problem, options.threshold, where);
  // The sum of label l and decision d is number l (classes + 1) + d; d = classes: no decision.
  return {.inputs = {scores, labels},
          .weights = options.weights,
          .counts = problem.counts(),
          .add =
              [problem, threshold = options.threshold](const Sample& sample, State& state) {
                const size_t decision = problem.decision_of(sample, threshold).value_or(problem.classes);
                state.sum(problem.label_of(sample) * (problem.classes + 1) + decision)
                    .add(problem.weight_of(sample));
              },
          .result = [problem, normalisation = options.normalisation](const State& state) -> Result {
            std::vector<std::vector<double>> rows;
            bool all_finite = true;
            for (size_t l = 0; l < problem.classes; ++l) {
              auto& row = rows.emplace_back();
              for (size_t d = 0; d <= problem.classes; ++d)
                row.push_back(state.sum(l * (problem.classes + 1) + d).value());
              all_finite &= row.back() == 0;
            }
            Table table{.columns = problem.class_names};
            if (all_finite)
              for (auto& row : rows) row.pop_back();
            else
              table.columns.emplace_back("not finite");
            if (normalisation != Normalisation::kNone) normalise(normalisation, rows);
            for (size_t l = 0; l < problem.classes; ++l)
              table.rows.emplace_back(problem.class_names[l], std::move(rows[l]));
            return {{}, std::move(table)};
          },
          .parts = std::vector<std::string>()};
}

}  // namespace mox::metrics
