#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// The same elements in row-major order under another shape.
//
//   x: any dtype, any shape; the result has x's dtype and the shape `shape`.
//   shape: extents >= 0, of which one may be -1: it takes what remains of x's elements.
// Throws InvalidArgument if the number of elements differs, if more than one extent is -1, or if -1 could
// stand for any number because another extent is 0. Gradient: reshaped back. Costs nothing at run time.
Tensor reshape(const Tensor& x, std::vector<int64_t> shape, SourceLocation where = SourceLocation::current());

}  // namespace mox
