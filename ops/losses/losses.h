// Losses, and the shares of right answers.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The mean over all elements of (predictions - labels)^2, a scalar. float32, of one shape (InvalidArgument
// otherwise: a [n, 1] against an [n] would broadcast to n^2 differences without a word).
// Gradients pass to both.
Tensor mean_squared_error(const Tensor& predictions, const Tensor& labels,
                          SourceLocation where = SourceLocation::current());

struct HuberLossOptions {
  double delta = 1.0;  // the error at which the loss becomes linear; > 0
};

// The mean over all elements of e^2 / 2 where |e| <= delta, and delta (|e| - delta / 2) elsewhere, for the
// error e = predictions - labels; a scalar. float32, of one shape (InvalidArgument otherwise). Gradients pass
// to both. Huber, "Robust Estimation of a Location Parameter" (1964).
Tensor huber_loss(const Tensor& predictions, const Tensor& labels, HuberLossOptions options = {},
                  SourceLocation where = SourceLocation::current());

// sum(x^2) / 2, a scalar. float32. Gradient: g x.
Tensor l2_loss(const Tensor& x, SourceLocation where = SourceLocation::current());

// -z ln(s(x)) - (1 - z) ln(1 - s(x)) for logits x, labels z in [0, 1] and the logistic function s, element by
// element; take reduce_mean of it for a loss. Computed as (1 - z) ln(1 + e^x) + z ln(1 + e^-x), softplus both
// times, where nothing overflows and no digits cancel. float32, of one shape (InvalidArgument otherwise).
// Gradients: g (s(x) - z) for x, -g x for z.
Tensor sigmoid_cross_entropy(const Tensor& logits, const Tensor& labels,
                             SourceLocation where = SourceLocation::current());

struct CrossEntropyOptions {
  // Moves this share of every label's mass evenly to all classes, in [0, 1): see smooth_labels.
  double label_smoothing = 0.0;
};

// Label smoothing: labels * (1 - smoothing) + smoothing / classes.
//
//   labels: float32 [..., classes], classes >= 1; smoothing in [0, 1); the result has the labels' type.
// Throws InvalidArgument otherwise. Gradient: for labels, g * (1 - smoothing).
// Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (CVPR 2016), section 7.
Tensor smooth_labels(const Tensor& labels, double smoothing,
                     SourceLocation where = SourceLocation::current());

// The cross entropy between a distribution and the softmax of the logits, for each row:
// -sum(t * log(softmax(logits))), where t is labels, or smooth_labels(labels, label_smoothing).
//
//   logits: float32 [batch, classes], classes >= 1, not normalised; labels: float32, of the logits' shape
//   (rows should sum to 1, but the formula and its gradient hold for any); result: float32 [batch], in nats.
// Computed in one pass over the rows with each row's maximum subtracted, so that it neither overflows nor
// loses digits. Throws InvalidArgument otherwise. Gradient: for logits, softmax_cross_entropy_gradient; for
// labels, -log(softmax(logits)) * (1 - label_smoothing) * g.
Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels,
                             const CrossEntropyOptions& options = {},
                             SourceLocation where = SourceLocation::current());

// The cross entropy between a label and the softmax of the logits, for each row:
// -log(softmax(logits)[label]). With label smoothing s: -sum(t * log(softmax(logits))) where t is (1 - s) *
// one_hot(label) + s / classes.
//
//   logits: float32 [batch, classes], classes >= 1, not normalised; labels: int32 or int64 [batch];
//   result: float32 [batch], in nats, >= 0 up to rounding.
// Computed in one pass over the logits with each row's maximum subtracted, so that it neither overflows nor
// loses digits. Throws InvalidArgument from its shape rule, and while a plan runs for a label outside [0,
// classes): the text names the label, its row and the number of classes. Gradient: for logits,
// sparse_softmax_cross_entropy_gradient; none for labels.
Tensor sparse_softmax_cross_entropy(const Tensor& logits, const Tensor& labels,
                                    const CrossEntropyOptions& options = {},
                                    SourceLocation where = SourceLocation::current());

// The gradient of softmax_cross_entropy for the logits: (softmax(logits) * sum(t) - t) * dy, row by row, t
// being the (smoothed) labels.
//
//   logits, labels: float32 [batch, classes]; dy: float32 [batch]; statistics: float32 [2, batch], each row's
//   maximum and log(sum(exp(logits - maximum))): the loss node's second output. They are a function of the
//   logits, and no gradient is taken for them.
// Throws InvalidArgument otherwise. Gradients: for logits, labels and dy, in ops of the public vocabulary.
Tensor softmax_cross_entropy_gradient(const Tensor& logits, const Tensor& labels, const Tensor& statistics,
                                      const Tensor& dy, const CrossEntropyOptions& options = {},
                                      SourceLocation where = SourceLocation::current());

// The gradient of sparse_softmax_cross_entropy for the logits: (softmax(logits) - t) * dy, row by row, t
// being the (smoothed) one-hot row of the label.
//
//   logits: float32 [batch, classes]; labels: int32 or int64 [batch]; dy: float32 [batch];
//   statistics: float32 [2, batch], each row's maximum and log(sum(exp(logits - maximum))): the loss node's
//   second output. They are a function of the logits, and no gradient is taken for them.
// Throws InvalidArgument from its shape rule, and while a plan runs for a label outside [0, classes).
// Gradients: for logits and dy, in ops of the public vocabulary.
Tensor sparse_softmax_cross_entropy_gradient(const Tensor& logits, const Tensor& labels,
                                             const Tensor& statistics, const Tensor& dy,
                                             const CrossEntropyOptions& options = {},
                                             SourceLocation where = SourceLocation::current());

// The weight of each label's class: weights[label]. For a loss in which classes count differently,
// reduce_mean(class_weights(labels, {1, 20}) * sparse_softmax_cross_entropy(logits, labels)), which is a mean
// over samples, so that it does not depend on how they are cut into batches and replicas.
//
//   labels: int32 or int64, any shape; weights: one a class, finite, >= 0, not all 0; result: float32 alike.
// Throws InvalidArgument otherwise, and while a plan runs for a label outside [0, classes). No gradient.
Tensor class_weights(const Tensor& labels, const std::vector<double>& weights,
                     SourceLocation where = SourceLocation::current());

// sum(values * weights) / sum(weights) over all elements, a scalar: PyTorch's mean with weights. 0, without
// gradient, where the weights add up to 0. It is the mean of one batch (of a logical replica): where weights
// vary, samples of batches with small weights count for more than they do over the whole.
//
//   values, weights: float32 of one shape (InvalidArgument otherwise); weights >= 0, which nothing looks at.
//   Gradients pass to both.
Tensor weighted_mean(const Tensor& values, const Tensor& weights,
                     SourceLocation where = SourceLocation::current());

// The share of rows whose largest logit is the label's: the mean of argmax(logits) == labels. Of several
// equal largest logits the first decides; a row with a logit that is not finite counts as wrong. NaN for an
// empty batch.
//
//   logits: float32 [batch, classes], classes >= 1; labels: int32 or int64 [batch]; result: a float32 scalar
//   in [0, 1].
// Throws InvalidArgument from its shape rule, and while a plan runs for a label outside [0,
// classes). No gradient.
Tensor accuracy(const Tensor& logits, const Tensor& labels, SourceLocation where = SourceLocation::current());

// Whether each row's target is among its k largest predictions. Classes that tie with the target do not push
// it out: the answer is yes if fewer than k classes have a strictly larger prediction (TensorFlow's rule). A
// row with a prediction that is not finite is answered with no.
//
//   predictions: float32 [batch, classes], classes >= 1; targets: int32 or int64 [batch]; k >= 1; result:
//   bool [batch].
// Throws InvalidArgument from its shape rule, and while a plan runs for a target outside [0,
// classes). No gradient.
Tensor in_top_k(const Tensor& predictions, const Tensor& targets, int64_t k,
                SourceLocation where = SourceLocation::current());

}  // namespace mox
