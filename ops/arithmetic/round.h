// Rounding to the nearest.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The whole number nearest to x, the even one of two (as IEEE 754 and NumPy round), element by element.
// float32. No gradient passes: it is 0 wherever it is defined.
Tensor round(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
