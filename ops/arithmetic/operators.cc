#include "ops/arithmetic/arithmetic.h"

namespace mox {

Tensor operator+(const Operand& a, const Operand& b) { return add(a, b, a.where()); }
Tensor operator-(const Operand& a, const Operand& b) { return sub(a, b, a.where()); }
Tensor operator*(const Operand& a, const Operand& b) { return mul(a, b, a.where()); }
Tensor operator/(const Operand& a, const Operand& b) { return div(a, b, a.where()); }
Tensor operator-(const Operand& a) { return neg(a.tensor(), a.where()); }

}  // namespace mox
