// The logistic function.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// 1 / (1 + e^-x), element by element. float32. Gradient: g y (1 - y), y the result.
Tensor sigmoid(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
