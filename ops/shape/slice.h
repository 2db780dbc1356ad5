#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// The box of `size` elements an axis that starts at `begin`: result[i, j, ...] = x[begin[0] + i, begin[1] +
// j, ...].
//
//   x: any dtype, any shape; begin and size have an entry for every axis; size -1 means "to the end".
// Throws InvalidArgument if the box does not lie inside of x. Gradient: the result's gradient, surrounded by
// zeros.
Tensor slice(const Tensor& x, std::vector<int64_t> begin, std::vector<int64_t> size,
             SourceLocation where = SourceLocation::current());

}  // namespace mox
