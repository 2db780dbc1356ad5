#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// The position of the largest element along `axis`; of several equal ones, the first. NaN counts as larger
// than any number, as in NumPy, so that it does not stay hidden.
//
//   x: float32, int32, int64 or uint8, extent >= 1 on the axis; axis in [-rank, rank); result: int64, x's
//   shape without the axis.
// Throws InvalidArgument otherwise. No gradient.
Tensor argmax(const Tensor& x, int64_t axis = -1, SourceLocation where = SourceLocation::current());

}  // namespace mox
