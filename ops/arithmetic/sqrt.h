// The square root.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The square root of x, element by element. float32. NaN below 0. Gradient: g / (2 sqrt(x)), infinite at 0.
Tensor sqrt(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
