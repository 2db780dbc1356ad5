// The metrics that come with the framework, for ModelSpec::metrics:
//
//   return {.loss = loss,
//           .metrics = {{"accuracy", mox::metrics::accuracy(logits, labels)},
//                       {"auc", mox::metrics::roc_auc(mox::sigmoid(logit), labels)}}};
//
// Each is computed over all samples of an evaluation in float64, with the same bits for any batch size and
// number of devices and ranks. What they compute, and what they answer in the corners, is what scikit-learn's
// function of that name does, unless it is said here.
//
// Predictions, by what they are of:
//   one decision:         scores  [batch] or [batch, 1], labels 0 or 1 of as many elements
//   one class of several: scores  [batch, classes],      labels [batch], int32 or int64 in [0, classes)
//   several decisions:    scores  [batch, n],            labels [batch, n], 0 or 1
// Scores are any numbers where only their order counts (accuracy, roc_auc, ...), and probabilities in [0, 1]
// where it says so: give softmax(logits) or sigmoid(logits) there. A score that is not finite never counts as
// right, and makes what needs its value NaN.
//
// Shapes that do not fit throw InvalidArgument, at once and with the place in the program; a label or a
// probability outside its range ends the evaluation with InvalidArgument, naming the sample.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "moxing/metrics/metric.h"
#include "runtime/base/source_location.h"

namespace mox::metrics {

// Fields that options share:
//   weights:       of the samples, see Metric::weights
//   class_weights: of the label's class, on top; empty: all 1. Not all 0; not with several decisions
//   class_names:   for numbers and tables of each class; empty: "0", "1", ...

struct MeanOptions {
  Tensor weights = {};
  std::optional<Direction> direction = {};  // that of what it is the mean of; a mean has none of its own
};
// The mean of `values` [batch, ...] over samples; of a sample with several values, their mean.
Metric mean(const Tensor& values, const MeanOptions& options = {},
            SourceLocation where = SourceLocation::current());

struct AccuracyOptions {
  Tensor weights = {};
  std::vector<double> class_weights = {};
  int64_t k = 1;           // whether the label is among the k largest scores (of several classes)
  double threshold = 0.5;  // a decision is yes where its score is larger or equal; for logits take 0
};
// The share of samples that are right. Of equal scores the first decides for k = 1; for k > 1 fewer than k
// classes must score higher than the label's. With several decisions a sample is right where all of them are.
Metric accuracy(const Tensor& scores, const Tensor& labels, const AccuracyOptions& options = {},
                SourceLocation where = SourceLocation::current());
// accuracy with k = `k`.
Metric top_k_accuracy(const Tensor& scores, const Tensor& labels, int64_t k, AccuracyOptions options = {},
                      SourceLocation where = SourceLocation::current());

enum class Average {
  kAutomatic,  // kBinary for one decision, else kMacro
  kBinary,     // of the label 1 (one decision)
  kMacro,      // the mean over the classes that occur, among labels or among decisions
  kMicro,      // of all decisions together
  kWeighted,   // the mean over classes, each with the weight of its samples
  kPerClass,   // one number a class, "name/class"
};

struct DecisionOptions {
  Tensor weights = {};
  std::vector<double> class_weights = {};
  std::vector<std::string> class_names = {};
  Average average = Average::kAutomatic;
  double threshold = 0.5;   // as in AccuracyOptions
  double if_undefined = 0;  // of a class without any such decision or label (0 / 0)
};
Metric precision(const Tensor& scores, const Tensor& labels, const DecisionOptions& options = {},
                 SourceLocation where = SourceLocation::current());
Metric recall(const Tensor& scores, const Tensor& labels, const DecisionOptions& options = {},
              SourceLocation where = SourceLocation::current());
Metric f1(const Tensor& scores, const Tensor& labels, const DecisionOptions& options = {},
          SourceLocation where = SourceLocation::current());

// A table with precision, recall, F1 and samples of each class, and their means over the classes that occur
// ("macro mean") and weighted by samples ("weighted mean"). Its numbers are "name/precision", "name/recall"
// and "name/f1", averaged as options.average says, which must not be kPerClass.
Metric per_class_table(const Tensor& scores, const Tensor& labels, const DecisionOptions& options = {},
                       SourceLocation where = SourceLocation::current());

enum class Normalisation { kNone, kLabels, kDecisions, kAll };
struct ConfusionOptions {
  Tensor weights = {};
  std::vector<double> class_weights = {};
  std::vector<std::string> class_names = {};
  Normalisation normalisation = Normalisation::kNone;  // to shares of each row, of each column, or of all
  double threshold = 0.5;                              // as in AccuracyOptions
};
// A table: a row for each label, a column for each decision, and one "not finite" if there are scores that
// are not. No number, and so no direction. One decision or one class of several.
Metric confusion_matrix(const Tensor& scores, const Tensor& labels, const ConfusionOptions& options = {},
                        SourceLocation where = SourceLocation::current());

struct AucOptions {
  Tensor weights = {};
  std::vector<double> class_weights = {};
  std::vector<std::string> class_names = {};
  // 0: exact, from all scores in order, which keeps each sample's scores on every rank. n: scores must be in
  // [0, 1] and count as equal within each of n equal bins, in constant memory
  int64_t bins = 0;
  // Of several classes each against the rest, or of several decisions. kMacro and kWeighted are taken over
  // those whose area is defined, kWeighted with the weight of their samples
  Average average = Average::kAutomatic;
};
// The area under the receiver operating characteristic: the chance that a sample of the class scores higher
// than another one, ties counting half. NaN where the labels are all of one kind, and for a score
// that is NaN.
Metric roc_auc(const Tensor& scores, const Tensor& labels, const AucOptions& options = {},
               SourceLocation where = SourceLocation::current());
// The area under the curve of precision over recall, in steps: sum of (R_n - R_(n-1)) P_n over the distinct
// scores (scikit-learn's average_precision_score). NaN without a label 1, and for a score that is NaN.
Metric pr_auc(const Tensor& scores, const Tensor& labels, const AucOptions& options = {},
              SourceLocation where = SourceLocation::current());

struct ProbabilityOptions {
  Tensor weights = {};
  std::vector<double> class_weights = {};
};
// -ln of the probability of what was the case, averaged, in nats. Probabilities are kept 2.2e-16 away from 0
// and 1, and those of several classes then made to sum to 1. One decision or one class of several.
Metric log_loss(const Tensor& probabilities, const Tensor& labels, const ProbabilityOptions& options = {},
                SourceLocation where = SourceLocation::current());

// The mean of the squared difference between probability and case: (p - y)^2 of one decision (in [0, 1]); of
// several classes the sum over classes (in [0, 2]). Brier, "Verification of forecasts expressed in terms of
// probability" (1950). One decision or one class of several.
Metric brier_score(const Tensor& probabilities, const Tensor& labels, const ProbabilityOptions& options = {},
                   SourceLocation where = SourceLocation::current());

struct CalibrationOptions {
  Tensor weights = {};
  std::vector<double> class_weights = {};
  int64_t bins = 15;  // of equal width over [0, 1], each without its lower end
};
// The expected calibration error: over bins of confidence, the mean of |share that was right - mean
// confidence|, by the number of samples. Of several classes the confidence is that in the class decided for;
// of one decision it is the probability of the label 1, and right is the label 1. Guo et al., "On Calibration
// of Modern Neural Networks" (2017). One decision or one class of several.
Metric expected_calibration_error(const Tensor& probabilities, const Tensor& labels,
                                  const CalibrationOptions& options = {},
                                  SourceLocation where = SourceLocation::current());

struct ErrorOptions {
  Tensor weights = {};
};
// Predictions and labels of one shape [batch, ...]; [batch, 1] and [batch] go together.
// The mean of |prediction - label|, over elements and samples.
Metric mean_absolute_error(const Tensor& predictions, const Tensor& labels, const ErrorOptions& options = {},
                           SourceLocation where = SourceLocation::current());
// The root of the mean of (prediction - label)^2, over elements and samples.
Metric root_mean_squared_error(const Tensor& predictions, const Tensor& labels,
                               const ErrorOptions& options = {},
                               SourceLocation where = SourceLocation::current());
// The share of the labels' variance that is explained: 1 - sum (y - p)^2 / sum (y - mean y)^2; of several
// elements the mean over them. Where the labels do not vary: 1 if all predictions are exact, else 0.
Metric r2(const Tensor& predictions, const Tensor& labels, const ErrorOptions& options = {},
          SourceLocation where = SourceLocation::current());

}  // namespace mox::metrics
