#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// The gradient of y = log_softmax(x) for x: dy - exp(y) * sum(dy), summed along `axis`.
//
//   y, dy: float32, one shape, rank >= 1; axis in [-rank, rank); the result has their type.
// Throws InvalidArgument otherwise. Gradients: for both, in ops of the public vocabulary.
Tensor log_softmax_backward(const Tensor& y, const Tensor& dy, int64_t axis = -1,
                            SourceLocation where = SourceLocation::current());

}  // namespace mox
