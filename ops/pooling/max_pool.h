// Maximum over windows of an image.
#pragma once

#include "ops/pooling/pool2d_options.h"
#include "runtime/graph/op.h"

namespace mox {

// y[n, c, i, j] = the largest x[n, c, ...] in window (i, j); padding never wins, NaN always does.
// max_pool(relu(x)) is built as relu(max_pool(x)), which is the same value and the same gradient, with less
// work; unless the window is a single pixel.
//
// x: float32 [batch, channels, height, width]; y: [batch, channels, height', width'] with the extents that
// Padding states. Gradient: dy goes to the first largest element of its window (max_pool_backprop). Throws
// InvalidArgument where the window does not fit, or where padding is as large as the window.
Tensor max_pool(const Tensor& x, const Pool2dOptions& options = {},
                SourceLocation where = SourceLocation::current());

// The maximum over the whole image: [batch, channels, height, width] -> [batch, channels, 1, 1].
Tensor global_max_pool(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
