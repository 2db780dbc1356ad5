// Mean over windows of an image.
#pragma once

#include "ops/pooling/pool2d_options.h"
#include "runtime/graph/op.h"

namespace mox {

// y[n, c, i, j] = the mean of x[n, c, ...] in window (i, j), over the pixels inside of the image, or with
// `count_include_pad` over the whole window.
//
// x: float32 [batch, channels, height, width]; y: [batch, channels, height', width'] with the extents that
// Padding states. Gradient: avg_pool_backprop. Throws InvalidArgument where the window does not fit, or where
// padding is as large as the window.
Tensor avg_pool(const Tensor& x, const Pool2dOptions& options = {},
                SourceLocation where = SourceLocation::current());

// The mean over the whole image: [batch, channels, height, width] -> [batch, channels, 1, 1].
Tensor global_avg_pool(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
