#pragma once

#include "runtime/graph/tensor.h"

namespace mox {

// The share of rows whose largest logit is the label's: the mean of argmax(logits) == labels. Of several
// equal largest logits the first decides; a row with a logit that is not finite counts as wrong. NaN for an
// empty batch.
//
//   logits: float32 [batch, classes], classes >= 1; labels: int32 or int64 [batch]; result: a float32 scalar
//   in [0, 1].
// Throws InvalidArgument from its shape rule, and while a plan runs for a label outside [0, classes). No
// gradient.
Tensor accuracy(const Tensor& logits, const Tensor& labels, SourceLocation where = SourceLocation::current());

}  // namespace mox
