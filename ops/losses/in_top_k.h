#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// Whether each row's target is among its k largest predictions. Classes that tie with the target do not push
// it out: the answer is yes if fewer than k classes have a strictly larger prediction (TensorFlow's rule). A
// row with a prediction that is not finite is answered with no.
//
//   predictions: float32 [batch, classes], classes >= 1; targets: int32 or int64 [batch]; k >= 1; result:
//   bool [batch].
// Throws InvalidArgument from its shape rule, and while a plan runs for a target outside [0, classes). No
// gradient.
Tensor in_top_k(const Tensor& predictions, const Tensor& targets, int64_t k,
                SourceLocation where = SourceLocation::current());

}  // namespace mox
