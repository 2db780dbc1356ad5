// The gradient of a convolution with respect to its filter.
#pragma once

#include "ops/convolution/conv2d.h"

namespace mox {

// dw of y = conv2d(x, w, options), given dy: dw[o, c, p, q] sums x[n, c, ...] * dy[n, o, ...] over batch and
// positions. `w_shape`: the shape of w; dy: float32 of y's shape. oneDNN cuts the sum over the batch by the
// number of threads: teams of different sizes agree within rounding. Linear in x and dy; gradients:
// conv2d_backprop_input and conv2d. Throws InvalidArgument where shapes do not fit.
Tensor conv2d_backprop_filter(const Tensor& x, const Shape& w_shape, const Tensor& dy,
                              const Conv2dOptions& options = {},
                              SourceLocation where = SourceLocation::current());

}  // namespace mox
