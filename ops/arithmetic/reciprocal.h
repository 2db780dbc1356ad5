// The reciprocal.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// 1 / x, element by element. float32. Infinite at 0. Gradient: -g / x^2.
Tensor reciprocal(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
