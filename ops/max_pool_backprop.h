// The gradient of max_pool.
#pragma once

#include "ops/max_pool.h"

namespace mox {

// dx of y = max_pool(x, options): each dy goes to the element that won its window. `workspace` is the second
// output of the max_pool node, which remembers the winners: only max_pool's gradient has it to give. Has no
// gradient of its own.
Tensor max_pool_backprop(const Shape& x_shape, const Tensor& dy, const Tensor& workspace,
                         const Pool2dOptions& options, SourceLocation where = SourceLocation::current());

}  // namespace mox
