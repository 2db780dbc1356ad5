// Comparisons, logic and choice, element by element. No gradient passes through a comparison.
#pragma once

#include "ops/elementwise/operand.h"
#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

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

// bool inputs that broadcast as in NumPy; the result is bool. No gradient passes.
Tensor logical_and(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_or(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_not(const Tensor& a, SourceLocation where = SourceLocation::current());

// a where `condition` is true, b elsewhere. `condition` is bool; a and b have one dtype, float32, int32 or
// int64. All three broadcast as in NumPy. Gradients: g goes to the operand that was chosen, 0 to the other;
// also where the one that was not chosen is NaN.
Tensor select(const Tensor& condition, const Operand& a, const Operand& b,
              SourceLocation where = SourceLocation::current());

}  // namespace mox
