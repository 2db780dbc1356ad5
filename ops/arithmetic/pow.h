// Powers.
#pragma once

#include "ops/elementwise/operand.h"

namespace mox {

// x^y, element by element. float32; the operands broadcast as in NumPy. A negative x with a fractional y
// gives NaN, 0^0 is 1. Exponents that are the numbers -1, 0.5, 1 and 2 are computed as reciprocal, sqrt, x
// itself and square. Gradients: g y x^(y-1) for x (0 where y is 0), and g x^y ln(x) for y (0 where x <= 0),
// summed back to their shapes.
Tensor pow(const Operand& x, const Operand& y, SourceLocation where = SourceLocation::current());

}  // namespace mox
