#pragma once

#include "runtime/graph/tensor.h"

namespace mox {

// From each row, the elements that the row's own indices name: result[..., j] = x[..., indices[..., j]].
//
//   x: float32, int32 or int64, [..., n]; indices: int32 or int64, [..., k], equal to x on all axes but the
//   last; result: [..., k].
// Throws InvalidArgument from its shape rule, and while a plan runs for an index outside [0, n).
// Gradient: for x, scatter_along_last_axis; none for indices.
Tensor take_along_last_axis(const Tensor& x, const Tensor& indices,
                            SourceLocation where = SourceLocation::current());

}  // namespace mox
