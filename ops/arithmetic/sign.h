// The sign.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// -1, 0 or 1 as x is negative, zero or positive, element by element; NaN for NaN. float32, int32 or int64.
// No gradient passes: it is 0 wherever it is defined.
Tensor sign(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
