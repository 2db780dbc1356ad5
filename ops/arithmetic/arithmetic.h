// Arithmetic, element by element. Operands of two-operand ops broadcast as in NumPy, and may be plain
// numbers; gradients are summed back to their shapes.
#pragma once

#include "ops/elementwise/operand.h"
#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// a + b, a - b, a * b, a / b and -a on tensors, with numbers on either side: the ops add, sub,
// mul, div and neg.
Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a);

// a + b, element by element. float32, int32 or int64 (integers wrap around). Also written a + b.
// a and b broadcast as in NumPy; gradients are summed back to their shapes.
// Gradients: g and g.
Tensor add(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

// a - b, element by element. float32, int32 or int64 (integers wrap around). Also written a - b.
// a and b broadcast as in NumPy; gradients are summed back to their shapes.
// Gradients: g and -g.
Tensor sub(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

// a * b, element by element. float32, int32 or int64 (integers wrap around). Also written a * b.
// a and b broadcast as in NumPy; gradients are summed back to their shapes.
// Gradients: g b and g a.
Tensor mul(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

// a / b, element by element. float32 (cast integers first: what their quotient is should be said). Also
// written a / b. a and b broadcast as in NumPy; gradients are summed back to their shapes. Gradients: g / b
// and -g a / b^2.
Tensor div(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

// -x, element by element. float32, int32 or int64 (integers wrap around). Also written -x.
// Gradient: -g.
Tensor neg(const Tensor& x, SourceLocation where = SourceLocation::current());

// |x|, element by element. float32, int32 or int64. Gradient: g sign(x), 0 at 0.
Tensor abs(const Tensor& x, SourceLocation where = SourceLocation::current());

// -1, 0 or 1 as x is negative, zero or positive, element by element; NaN for NaN. float32, int32 or int64.
// No gradient passes: it is 0 wherever it is defined.
Tensor sign(const Tensor& x, SourceLocation where = SourceLocation::current());

// x^2, element by element. float32, int32 or int64 (integers wrap around). Gradient: 2 g x.
Tensor square(const Tensor& x, SourceLocation where = SourceLocation::current());

// The square root of x, element by element. float32. NaN below 0. Gradient: g / (2 sqrt(x)), infinite at 0.
Tensor sqrt(const Tensor& x, SourceLocation where = SourceLocation::current());

// 1 / sqrt(x), element by element. float32. Infinite at 0, NaN below. Gradient: -g rsqrt(x)^3 / 2.
Tensor rsqrt(const Tensor& x, SourceLocation where = SourceLocation::current());

// 1 / x, element by element. float32. Infinite at 0. Gradient: -g / x^2.
Tensor reciprocal(const Tensor& x, SourceLocation where = SourceLocation::current());

// e^x, element by element. float32. Gradient: g * exp(x).
Tensor exp(const Tensor& x, SourceLocation where = SourceLocation::current());

// ln(x), element by element. float32. -infinity at 0, NaN below. Gradient: g / x.
Tensor log(const Tensor& x, SourceLocation where = SourceLocation::current());

// x^y, element by element. float32; the operands broadcast as in NumPy. A negative x with a fractional y
// gives NaN, 0^0 is 1. Exponents that are the numbers -1, 0.5, 1 and 2 are computed as reciprocal, sqrt (but
// for -0, whose power is 0, and -infinity, whose power is infinity), x itself and square. Gradients:
// g y x^(y-1) for x (0 where y is 0), and g x^y ln(x) for y (0 where x <= 0), summed back to their shapes.
Tensor pow(const Operand& x, const Operand& y, SourceLocation where = SourceLocation::current());

// The greatest whole number that is not above x, element by element. float32.
// No gradient passes: it is 0 wherever it is defined.
Tensor floor(const Tensor& x, SourceLocation where = SourceLocation::current());

// The whole number nearest to x, the even one of two (as IEEE 754 and NumPy round), element by element.
// float32. No gradient passes: it is 0 wherever it is defined.
Tensor round(const Tensor& x, SourceLocation where = SourceLocation::current());

// max(a, b), element by element; NaN if either is. float32, int32 or int64.
// a and b broadcast as in NumPy; gradients are summed back to their shapes.
// Gradients: g goes to a where a >= b, to b elsewhere (as in TensorFlow).
Tensor maximum(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

// min(a, b), element by element; NaN if either is. float32, int32 or int64.
// a and b broadcast as in NumPy; gradients are summed back to their shapes.
// Gradients: g goes to a where a <= b, to b elsewhere (as in TensorFlow).
Tensor minimum(const Operand& a, const Operand& b, SourceLocation where = SourceLocation::current());

// min(max(x, low), high), element by element. float32; low <= high (InvalidArgument otherwise). NaN stays
// NaN. Gradient: g where low <= x <= high, 0 elsewhere.
Tensor clip_by_value(const Tensor& x, double low, double high,
                     SourceLocation where = SourceLocation::current());

// x with elements of `dtype`; x itself if it has that dtype. To bool: "is not 0"; from bool: 0 and 1. From
// float32 to an integer: the fraction is cut off, what lies outside of the integer's range becomes its
// nearest end, NaN becomes 0. Between integers the low bits are kept. To bfloat16: rounded to nearest even.
// Gradient: g cast back, between floating dtypes; none through integers and bool.
Tensor cast(const Tensor& x, DType dtype, SourceLocation where = SourceLocation::current());

}  // namespace mox
