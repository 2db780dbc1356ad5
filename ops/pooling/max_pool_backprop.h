// The gradient of max_pool, and its adjoint.
#pragma once

#include "ops/pooling/max_pool.h"

namespace mox {

// dx of y = max_pool(x, options): each dy is added to the element that won its window. `winner` is the second
// output of the max_pool node: only max_pool's gradient has it to give. Linear in dy; gradient:
// max_pool_gather. Throws InvalidArgument where types do not fit.
Tensor max_pool_backprop(const Shape& x_shape, const Tensor& dy, const Tensor& winner,
                         const Pool2dOptions& options, SourceLocation where = SourceLocation::current());

// The elements of x at the positions of the winners: [batch, channels, height', width']. Linear in x;
// gradient: max_pool_backprop. Throws InvalidArgument where types do not fit.
Tensor max_pool_gather(const Tensor& x, const Tensor& winner, const Pool2dOptions& options,
                       SourceLocation where = SourceLocation::current());

}  // namespace mox
