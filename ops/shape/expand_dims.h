#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// Inserts an axis of extent 1 so that it becomes axis `axis` of the result: [a, b] becomes [1, a, b] for axis
// 0 and [a, b, 1] for axis 2 or -1.
//
//   x: any dtype, any shape; axis in [-rank - 1, rank], rank being that of x.
// Throws InvalidArgument for another axis. Gradient: the axis removed. Costs nothing at run time.
Tensor expand_dims(const Tensor& x, int64_t axis, SourceLocation where = SourceLocation::current());

}  // namespace mox
