#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// x - log(sum(exp(x))) along `axis`: the logarithm of softmax, computed without taking a logarithm of a
// rounded softmax.
//
//   x: float32, rank >= 1, any shape; axis in [-rank, rank); the result has x's type.
// A logit of -infinity counts as absent; NaN or +infinity makes its whole slice NaN.
// Throws InvalidArgument otherwise. Gradient: log_softmax_backward(y, g).
Tensor log_softmax(const Tensor& x, int64_t axis = -1, SourceLocation where = SourceLocation::current());

}  // namespace mox
