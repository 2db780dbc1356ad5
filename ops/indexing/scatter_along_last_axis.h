#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// The reverse of take_along_last_axis: into rows of zeros, each element is added where its index says:
// result[..., indices[..., j]] += x[..., j], in the order of j.
//
//   x: float32, int32 or int64, [..., k]; indices: int32 or int64, of x's shape; length >= 0; result: [...,
//   length].
// Throws InvalidArgument from its shape rule, and while a plan runs for an index outside [0, length).
// Gradient: for x, take_along_last_axis; none for indices.
Tensor scatter_along_last_axis(const Tensor& x, const Tensor& indices, int64_t length,
                               SourceLocation where = SourceLocation::current());

}  // namespace mox
