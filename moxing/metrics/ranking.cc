// Areas under curves over all thresholds: roc_auc and pr_auc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "moxing/metrics/internal/decision_counts.h"
#include "moxing/metrics/internal/decision_problem.h"
#include "moxing/metrics/internal/parts.h"
#include "moxing/metrics/metrics.h"
#include "runtime/base/error.h"

namespace mox::metrics {
namespace {

using internal::DecisionProblem;
using internal::ProblemKind;

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// The weights of the samples with one score.
struct TiedSamples {
  double negative = 0, positive = 0;
};
using Area = double (*)(const std::vector<TiedSamples>& from_the_highest_score);

double area_under_roc(const std::vector<TiedSamples>& from_the_highest_score) {
  ExactSum above, negatives, area;
  for (const auto& [negative, positive] : from_the_highest_score) {
    area.add_product(negative, above.value());
    area.add_product(negative, positive, 0.5);
    above.add(positive);
    negatives.add(negative);
  }
  const double pairs = above.value() * negatives.value();
  return pairs == 0 ? kUndefined : area.value() / pairs;
}

double area_under_precision_recall(const std::vector<TiedSamples>& from_the_highest_score) {
  ExactSum positives, all, area;
  for (const auto& [negative, positive] : from_the_highest_score) {
    positives.add(positive);
    all.add(positive);
    all.add(negative);
    if (positive != 0) area.add_product(positive, positives.value() / all.value());
  }
  const double total = positives.value();
  return total == 0 ? kUndefined : area.value() / total;
}

// One curve: the scores of a class, or of one of several decisions, or of all of these together.
class Curves {
 public:
  Curves(DecisionProblem problem, int64_t bins) : problem_(std::move(problem)), bins_(bins) {}

  size_t count() const { return problem_.kind == ProblemKind::kOneDecision ? 1 : problem_.classes; }

  void add(const Sample& sample, State& state) const {
    const double weight = problem_.weight_of(sample);
    if (weight == 0) return;
    for (size_t curve = 0; curve < count(); ++curve) positive(sample, curve);  // a label that is none
    if (bins_ > 0) return add_to_bins(sample, weight, state);
    std::vector<double> row(sample.values[0].begin(), sample.values[0].end());
    row.insert(row.end(), sample.values[1].begin(), sample.values[1].end());
    row.push_back(weight);
    state.keep(row);
  }

  // Of one curve, or of all of them pooled.
  std::vector<TiedSamples> ties(const State& state, size_t first, size_t curves, bool* any_nan) const {
    return bins_ > 0 ? ties_of_bins(state, first, curves, any_nan)
                     : ties_of_rows(state, first, curves, any_nan);
  }

 private:
  bool positive(const Sample& sample, size_t curve) const {
    switch (problem_.kind) {
      case ProblemKind::kOneDecision:
        return DecisionProblem::is_positive(sample, 0);
      case ProblemKind::kSeveralDecisions:
        return DecisionProblem::is_positive(sample, curve);
      case ProblemKind::kOneOfSeveral:
        break;
    }
    return problem_.label_of(sample) == curve;
  }

  // The sums of curve c begin at c (2 bins + 1): negatives and positives of each bin, then scores
  // that are NaN.
  size_t first_sum(size_t curve) const { return curve * (2 * bins_ + 1); }

  void add_to_bins(const Sample& sample, double weight, State& state) const {
    for (size_t curve = 0; curve < count(); ++curve) {
      const double score = sample.values[0][curve];
      if (std::isnan(score)) {
        state.sum(first_sum(curve + 1) - 1).add(1);
        continue;
      }
      if (!(score >= 0 && score <= 1))
        throw InvalidArgument(fmt::format(
            "the score is {}, outside of [0, 1], which the bins cut; give a probability, or take bins = 0",
            score));
      const auto bin = std::min(static_cast<int64_t>(score * bins_), bins_ - 1);
      state.sum(first_sum(curve) + 2 * bin + (positive(sample, curve) ? 1 : 0)).add(weight);
    }
  }

  std::vector<TiedSamples> ties_of_bins(const State& state, size_t first, size_t curves,
                                        bool* any_nan) const {
    std::vector<TiedSamples> ties;
    for (size_t bin = bins_; bin-- > 0;) {
      ExactSum negative, positive;
      for (size_t curve = first; curve < first + curves; ++curve) {
        negative.add(state.sum(first_sum(curve) + 2 * bin));
        positive.add(state.sum(first_sum(curve) + 2 * bin + 1));
      }
      ties.push_back({negative.value(), positive.value()});
    }
    for (size_t curve = first; curve < first + curves; ++curve)
      *any_nan |= !state.sum(first_sum(curve + 1) - 1).is_zero();
    return ties;
  }

  std::vector<TiedSamples> ties_of_rows(const State& state, size_t first, size_t curves,
                                        bool* any_nan) const {
    std::vector<std::tuple<double, bool, double>> scored;
    const auto kept = state.kept();
    const size_t length = state.row_length(), scores = count();
    Sample sample{.values = std::vector<std::span<const double>>(2)};
    for (size_t at = 0; at < kept.size(); at += length) {
      const auto row = kept.subspan(at, length);
      sample.values = {row.first(scores), row.subspan(scores, length - scores - 1)};
      for (size_t curve = first; curve < first + curves; ++curve) {
        *any_nan |= std::isnan(row[curve]);
        scored.emplace_back(row[curve], positive(sample, curve), row.back());
      }
    }
    std::vector<TiedSamples> ties;
    if (*any_nan) return ties;
    std::ranges::sort(scored, std::ranges::greater());
    for (size_t i = 0; i < scored.size();) {
      const double score = std::get<0>(scored[i]);
      ExactSum negative, positive;
      for (; i < scored.size() && std::get<0>(scored[i]) == score; ++i)
        (std::get<1>(scored[i]) ? positive : negative).add(std::get<2>(scored[i]));
      ties.push_back({negative.value(), positive.value()});
    }
    return ties;
  }

  DecisionProblem problem_;
  int64_t bins_;
};

double weight_of_positives(const std::vector<TiedSamples>& ties) {
  ExactSum sum;
  for (const TiedSamples& tie : ties) sum.add(tie.positive);
  return sum.value();
}

Metric area_metric(const char* name, Area area, const Tensor& scores, const Tensor& labels,
                   const AucOptions& options, SourceLocation where) {
  const DecisionProblem problem =
      internal::decision_problem(name, scores, labels, options.class_weights, options.class_names, where);
  internal::require_weights(name, options.weights, scores, where);
  const Average average = internal::average_of(name, options.average, problem, where);
  if (problem.kind == ProblemKind::kOneDecision && average != Average::kBinary)
    throw InvalidArgument(
        fmt::format("metrics::{}: one decision has one curve, and no average over classes", name));
  if (options.bins < 0)
    throw InvalidArgument(fmt::format("metrics::{}: bins is {}, below 0", name, options.bins));
  const Curves curves(problem, options.bins);
  return {.inputs = {scores, labels},
          .weights = options.weights,
          .counts = problem.counts(),
          .direction = Direction::kLargerIsBetter,
          .add = [curves](const Sample& sample, State& state) { curves.add(sample, state); },
          .result = [curves, area, average, names = problem.class_names](const State& state) -> Result {
            const auto of = [&](size_t first, size_t count, double* positives = nullptr) {
              bool any_nan = false;
              const auto ties = curves.ties(state, first, count, &any_nan);
              if (positives) *positives = weight_of_positives(ties);
              return any_nan ? kUndefined : area(ties);
            };
            if (average == Average::kBinary || average == Average::kMicro) return of(0, curves.count());
            std::vector<std::pair<std::string, double>> numbers;
            double sum = 0, weights = 0;
            for (size_t curve = 0; curve < curves.count(); ++curve) {
              double positives = 0;
              numbers.emplace_back(names[curve], of(curve, 1, &positives));
              if (std::isnan(numbers.back().second)) continue;
              const double weight = average == Average::kWeighted ? positives : 1;
              sum += weight * numbers.back().second;
              weights += weight;
            }
            if (average == Average::kPerClass) return {std::move(numbers)};
            return weights == 0 ? kUndefined : sum / weights;
          },
          .parts = average == Average::kPerClass ? problem.class_names : internal::one_number()};
}

}  // namespace

Metric roc_auc(const Tensor& scores, const Tensor& labels, const AucOptions& options, SourceLocation where) {
  return area_metric("roc_auc", area_under_roc, scores, labels, options, where);
}

Metric pr_auc(const Tensor& scores, const Tensor& labels, const AucOptions& options, SourceLocation where) {
  return area_metric("pr_auc", area_under_precision_recall, scores, labels, options, where);
}

}  // namespace mox::metrics
