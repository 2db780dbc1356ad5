// The gradient of a convolution with respect to its image.
#pragma once

#include "ops/convolution/conv2d.h"

namespace mox {

// dx of y = conv2d(x, w, options), given dy: dx[n, c, ...] sums w[o, c, p, q] * dy[n, o, ...] over every
// position that x[n, c, ...] went into. `x_shape`: the shape of x; dy: float32 of y's shape. Linear in w and
// dy; gradients: conv2d_backprop_filter and conv2d. Throws InvalidArgument where shapes do not fit.
Tensor conv2d_backprop_input(const Shape& x_shape, const Tensor& w, const Tensor& dy,
                             const Conv2dOptions& options = {},
                             SourceLocation where = SourceLocation::current());

}  // namespace mox
