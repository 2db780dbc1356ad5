#pragma once

#include "ops/losses/cross_entropy_options.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The cross entropy between a label and the softmax of the logits, for each row:
// -log(softmax(logits)[label]). With label smoothing s: -sum(t * log(softmax(logits))) where t is (1 - s) *
// one_hot(label) + s / classes.
//
//   logits: float32 [batch, classes], classes >= 1, not normalised; labels: int32 or int64 [batch];
//   result: float32 [batch], in nats, >= 0 up to rounding.
// Computed in one pass over the logits with each row's maximum subtracted, so that it neither overflows nor
// loses digits. Throws InvalidArgument from its shape rule, and while a plan runs for a label outside [0,
// classes): the text names the label, its row and the number of classes. Gradient: for logits,
// sparse_softmax_cross_entropy_backward; none for labels.
Tensor sparse_softmax_cross_entropy(const Tensor& logits, const Tensor& labels,
                                    const CrossEntropyOptions& options = {},
                                    SourceLocation where = SourceLocation::current());

}  // namespace mox
