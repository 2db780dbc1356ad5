// Addition.
#pragma once

#include "ops/elementwise/operand.h"

namespace mox {

// a + b, element by element. float32, int32 or int64 (integers wrap around). Also written a + b.
// a and b broadcast as in NumPy; gradients are summed back to their shapes.
// Gradients: g and g.
Tensor add(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

}  // namespace mox
