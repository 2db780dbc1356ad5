#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// exp(x) / sum(exp(x)) along `axis`: positive numbers whose sum is 1. Computed as exp((x - m) - log(sum(exp(x
// - m)))) with m the maximum, so that it neither overflows nor loses digits.
//
//   x: float32, rank >= 1, any shape; axis in [-rank, rank); the result has x's type.
// A logit of -infinity counts as absent; NaN or +infinity makes its whole slice NaN.
// Throws InvalidArgument otherwise. Gradient: softmax_backward(y, g).
Tensor softmax(const Tensor& x, int64_t axis = -1, SourceLocation where = SourceLocation::current());

}  // namespace mox
