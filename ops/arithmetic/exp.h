// The exponential function.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// e^x, element by element. float32. Gradient: g * exp(x).
Tensor exp(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
