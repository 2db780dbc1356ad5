// The square.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// x^2, element by element. float32, int32 or int64 (integers wrap around). Gradient: 2 g x.
Tensor square(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
