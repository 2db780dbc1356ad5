// The hyperbolic tangent.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// tanh(x), element by element. float32. Gradient: g (1 - y^2), y the result.
Tensor tanh(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
