// The gradient of avg_pool.
#pragma once

#include "ops/pooling/avg_pool.h"

namespace mox {

// dx of y = avg_pool(x, options): each dy is divided evenly over the pixels that its window counted.
// `x_shape`: the shape of x; dy: float32 of y's shape. Linear; gradient: avg_pool. Throws InvalidArgument
// where shapes do not fit.
Tensor avg_pool_backprop(const Shape& x_shape, const Tensor& dy, const Pool2dOptions& options,
                         SourceLocation where = SourceLocation::current());

}  // namespace mox
