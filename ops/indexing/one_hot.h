#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// A new last axis of extent `depth` that holds 1 at the position each index names, and 0 elsewhere.
//
//   indices: int32 or int64, any shape; depth >= 0; dtype: any but bfloat16; result: [shape of indices...,
//   depth].
// Throws InvalidArgument from its shape rule, and while a plan runs for an index outside [0, depth). No
// gradient.
Tensor one_hot(const Tensor& indices, int64_t depth, DType dtype = DType::kFloat32,
               SourceLocation where = SourceLocation::current());

}  // namespace mox
