#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// Joins tensors of one type along a new axis, which becomes axis `axis` of the result: n tensors [a, b]
// become [n, a, b] for axis 0.
//
//   inputs: at least one; one dtype (any) and one shape; axis in [-rank - 1, rank].
// Throws InvalidArgument otherwise. Gradient: the parts of the result's gradient.
Tensor stack(const std::vector<Tensor>& inputs, int64_t axis = 0,
             SourceLocation where = SourceLocation::current());

}  // namespace mox
