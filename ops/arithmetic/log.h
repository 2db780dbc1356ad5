// The natural logarithm.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// ln(x), element by element. float32. -infinity at 0, NaN below. Gradient: g / x.
Tensor log(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
