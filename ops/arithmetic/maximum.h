// The larger of two.
#pragma once

#include "ops/elementwise/operand.h"

namespace mox {

// max(a, b), element by element; NaN if either is. float32, int32 or int64.
// a and b broadcast as in NumPy; gradients are summed back to their shapes.
// Gradients: g goes to a where a >= b, to b elsewhere (as in TensorFlow).
Tensor maximum(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

}  // namespace mox
