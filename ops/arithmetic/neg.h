// Negation.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// -x, element by element. float32, int32 or int64 (integers wrap around). Also written -x.
// Gradient: -g.
Tensor neg(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
