// The absolute value.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// |x|, element by element. float32, int32 or int64. Gradient: g sign(x), 0 at 0.
Tensor abs(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
