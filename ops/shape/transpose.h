#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// Reorders the axes: axis i of the result is axis permutation[i] of x.
//
//   x: any dtype, any shape; permutation: every axis of x once, in [-rank, rank).
// Throws InvalidArgument otherwise. Gradient: the inverse permutation.
Tensor transpose(const Tensor& x, std::vector<int64_t> permutation,
                 SourceLocation where = SourceLocation::current());

// Swaps the last two axes. Throws InvalidArgument if x has fewer than two.
Tensor transpose(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
