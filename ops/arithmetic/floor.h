// Rounding down.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The greatest whole number that is not above x, element by element. float32.
// No gradient passes: it is 0 wherever it is defined.
Tensor floor(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
