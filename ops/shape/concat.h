#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// Puts tensors one behind the other along `axis`.
//
//   inputs: at least one; one dtype (any), one rank >= 1, equal extents on every other axis; axis in [-rank,
//   rank).
// Throws InvalidArgument otherwise. Gradient: each input's part of the result's gradient.
Tensor concat(std::vector<Tensor> inputs, int64_t axis, SourceLocation where = SourceLocation::current());

}  // namespace mox
