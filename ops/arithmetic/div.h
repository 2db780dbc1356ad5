// Division.
#pragma once

#include "ops/elementwise/operand.h"

namespace mox {

// a / b, element by element. float32 (cast integers first: what their quotient is should be said). Also
// written a / b. a and b broadcast as in NumPy; gradients are summed back to their shapes. Gradients: g / b
// and -g a / b^2.
Tensor div(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

}  // namespace mox
