#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// The slices of `x` along `axis` that `indices` name: for axis 0, result[i..., :] = x[indices[i...], :].
//
//   x: any dtype, rank >= 1; indices: int32 or int64, any shape; axis in [-rank, rank).
//   The result's shape is x's with the axis replaced by the shape of indices.
// Throws InvalidArgument from its shape rule, and while a plan runs if an index lies outside [0, extent of
// the axis): the text names the index, its position and the bound. Gradient: for x, unsorted_segment_sum (an
// index that occurs often receives the sum); none for indices.
Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis = 0,
              SourceLocation where = SourceLocation::current());

}  // namespace mox
