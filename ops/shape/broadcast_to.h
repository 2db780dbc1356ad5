// Repetition to a larger shape.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// x repeated to `shape` by NumPy's rule: aligned at the last axis, extents equal or 1 in x. Any dtype. x
// itself if it has that shape. Gradient: sum_to(g, x's shape).
Tensor broadcast_to(const Tensor& x, const Shape& shape, SourceLocation where = SourceLocation::current());

}  // namespace mox
