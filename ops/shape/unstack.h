#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// The slices of a tensor along `axis`, without that axis: [n, a, b] becomes n tensors [a, b] for axis 0.
//
//   x: any dtype, rank >= 1, extent >= 1 on the axis; axis in [-rank, rank).
// Throws InvalidArgument otherwise. Gradient: the slices' gradients put together.
std::vector<Tensor> unstack(const Tensor& x, int64_t axis = 0,
                            SourceLocation where = SourceLocation::current());

}  // namespace mox
