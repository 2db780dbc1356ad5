// Comparisons, element by element, to bool.
#pragma once

#include "ops/elementwise/operand.h"

namespace mox {

// a > b and so on; the operands broadcast as in NumPy. Two tensors of one dtype: float32, int32 or int64. A
// comparison with NaN is false. No gradient passes.
Tensor greater(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());
Tensor greater_equal(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());
Tensor less(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());
Tensor less_equal(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

// a == b, a != b; also of uint8 and bool. NaN equals nothing, itself included.
Tensor equal(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());
Tensor not_equal(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

}  // namespace mox
