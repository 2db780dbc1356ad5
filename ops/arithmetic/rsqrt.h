// The reciprocal of the square root.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// 1 / sqrt(x), element by element. float32. Infinite at 0, NaN below. Gradient: -g rsqrt(x)^3 / 2.
Tensor rsqrt(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
