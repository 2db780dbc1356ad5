#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// Removes axes of extent 1: those named by `axes`, or all of them if none is named.
//
//   x: any dtype, any shape; axes in [-rank, rank).
// Throws InvalidArgument for an axis outside, named twice, or of another extent than 1.
// Gradient: reshaped back. Costs nothing at run time.
Tensor squeeze(const Tensor& x, std::vector<int64_t> axes = {},
               SourceLocation where = SourceLocation::current());

}  // namespace mox
