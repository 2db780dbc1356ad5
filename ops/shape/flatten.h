#pragma once

#include "runtime/graph/tensor.h"

namespace mox {

// Keeps the first axis and joins all others: [batch, a, b, ...] becomes [batch, a * b * ...]; [batch] becomes
// [batch, 1].
//
//   x: any dtype, at least one axis.
// Throws InvalidArgument for a scalar. Gradient: reshaped back. Costs nothing at run time.
Tensor flatten(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
