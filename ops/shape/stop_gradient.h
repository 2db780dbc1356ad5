// A wall for gradients.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// x itself, of any dtype, through which no gradient passes: for derivatives it is a constant. Costs nothing
// at run time.
Tensor stop_gradient(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
