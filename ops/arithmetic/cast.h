// Another dtype for the same numbers.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// x with elements of `dtype`; x itself if it has that dtype. To bool: "is not 0"; from bool: 0 and 1. From
// float32 to an integer: the fraction is cut off, what lies outside of the integer's range becomes its
// nearest end, NaN becomes 0. Between integers the low bits are kept. To bfloat16: rounded to nearest even.
// Gradient: g cast back, between floating dtypes; none through integers and bool.
Tensor cast(const Tensor& x, DType dtype, SourceLocation where = SourceLocation::current());

}  // namespace mox
