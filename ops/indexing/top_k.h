#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

struct TopK {
  Tensor values;   // [..., k], of x's dtype, the largest first
  Tensor indices;  // [..., k], int32: where in the last axis each value is
};

// The k largest elements of each row. Of equal elements the one with the lower index comes first; NaN counts
// as larger than any number.
//
//   x: float32, int32 or int64, [..., n] with n < 2^31; 0 <= k <= n.
// Throws InvalidArgument otherwise.
// Gradient: for x, the gradients of the values at their indices, zeros elsewhere (scatter_along_last_axis).
TopK top_k(const Tensor& x, int64_t k, SourceLocation where = SourceLocation::current());

}  // namespace mox
