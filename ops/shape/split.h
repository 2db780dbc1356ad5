#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// Cuts a tensor along `axis` into `parts` pieces of equal extent.
//
//   x: any dtype, rank >= 1; parts >= 1 divides the extent of the axis; axis in [-rank, rank).
// Throws InvalidArgument otherwise. Gradient: the pieces' gradients put together (zeros for pieces that are
// not used).
std::vector<Tensor> split(const Tensor& x, int64_t parts, int64_t axis = 0,
                          SourceLocation where = SourceLocation::current());

// The same with pieces of the given extents >= 0, whose sum is the extent of the axis; at least one.
std::vector<Tensor> split_sizes(const Tensor& x, std::vector<int64_t> sizes, int64_t axis = 0,
                                SourceLocation where = SourceLocation::current());

}  // namespace mox
