// The reverse of broadcasting.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// x summed over the axes that broadcast_to(y, x's shape) would repeat for a y of `shape`, so that the result
// has that shape. float32, int32 or int64. x itself if it has that shape. Gradient: broadcast_to(g, x's
// shape).
Tensor sum_to(const Tensor& x, const Shape& shape, SourceLocation where = SourceLocation::current());

}  // namespace mox
