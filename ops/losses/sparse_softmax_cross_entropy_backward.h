#pragma once

#include "ops/losses/cross_entropy_options.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The gradient of sparse_softmax_cross_entropy for the logits: (softmax(logits) - t) * dy, row by row, t
// being the (smoothed) one-hot row of the label.
//
//   logits: float32 [batch, classes]; labels: int32 or int64 [batch]; dy: float32 [batch];
//   statistics: float32 [2, batch], each row's maximum and log(sum(exp(logits - maximum))): the loss node's
//   second output. They are a function of the logits, and no gradient is taken for them.
// Throws InvalidArgument from its shape rule, and while a plan runs for a label outside [0, classes).
// Gradients: for logits and dy, in ops of the public vocabulary.
Tensor sparse_softmax_cross_entropy_backward(const Tensor& logits, const Tensor& labels,
                                             const Tensor& statistics, const Tensor& dy,
                                             const CrossEntropyOptions& options = {},
                                             SourceLocation where = SourceLocation::current());

}  // namespace mox
