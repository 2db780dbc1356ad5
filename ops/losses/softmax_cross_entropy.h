#pragma once

#include "ops/losses/cross_entropy_options.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The cross entropy between a distribution and the softmax of the logits, for each row:
// -sum(t * log(softmax(logits))), where t is labels, or smooth_labels(labels, label_smoothing).
//
//   logits: float32 [batch, classes], classes >= 1, not normalised; labels: float32, of the logits' shape
//   (rows should sum to 1, but the formula and its gradient hold for any); result: float32 [batch], in nats.
// Computed in one pass over the rows with each row's maximum subtracted, so that it neither overflows nor
// loses digits. Throws InvalidArgument otherwise. Gradient: for logits, softmax_cross_entropy_backward; for
// labels, -log(softmax(logits)) * (1 - label_smoothing) * g.
Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels,
                             const CrossEntropyOptions& options = {},
                             SourceLocation where = SourceLocation::current());

}  // namespace mox
