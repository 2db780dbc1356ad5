// The loss of independent yes-or-no decisions.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// -z ln(s(x)) - (1 - z) ln(1 - s(x)) for logits x, labels z in [0, 1] and the logistic function s, element by
// element; take reduce_mean of it for a loss. Computed as max(x, 0) - x z + ln(1 + e^-|x|), which does not
// overflow. float32, of one shape (InvalidArgument otherwise). Gradients: g (s(x) - z) for x, -g x for z.
Tensor sigmoid_cross_entropy(const Tensor& logits, const Tensor& labels,
                             SourceLocation where = SourceLocation::current());

}  // namespace mox
