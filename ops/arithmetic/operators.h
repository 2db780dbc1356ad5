// a + b, a - b, a * b, a / b and -a on tensors, with numbers on either side: the ops add, sub, mul, div and
// neg.
#pragma once

#include "ops/elementwise/operand.h"

namespace mox {

Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a);

}  // namespace mox
