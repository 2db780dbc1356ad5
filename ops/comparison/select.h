// A choice between two tensors, element by element.
#pragma once

#include "ops/elementwise/operand.h"

namespace mox {

// a where `condition` is true, b elsewhere. `condition` is bool; a and b have one dtype, float32, int32 or
// int64. All three broadcast as in NumPy. Gradients: g goes to the operand that was chosen, 0 to the other;
// also where the one that was not chosen is NaN.
Tensor select(const Tensor& condition, const Operand& a, const Operand& b,
              SourceLocation where = SourceLocation::current());

}  // namespace mox
