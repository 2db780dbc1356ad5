// Pooling over windows of an image, and its gradients.
#pragma once

#include <array>

#include "ops/convolution/geometry/padding.h"
#include "runtime/graph/op.h"

namespace mox {

struct Pool2dOptions {
  std::array<int64_t, 2> window = {2, 2};   // height, width
  std::array<int64_t, 2> strides = {2, 2};  // down, right
  Padding padding = Padding::kValid;
  bool count_include_pad = false;  // avg_pool: padding counts as zeros in the mean (false, as in TensorFlow)
};

// y[n, c, i, j] = the largest x[n, c, ...] in window (i, j); padding never wins, NaN always does.
// max_pool(relu(x)) is built as relu(max_pool(x)), which is the same value and the same gradient, with less
// work; unless the window is a single pixel.
//
// x: float32 [batch, channels, height, width]; y: [batch, channels, height', width'] with the extents that
// Padding states. Gradient: dy goes to the first largest element of its window (max_pool_gradient). Throws
// InvalidArgument where the window does not fit, or where padding is as large as the window.
Tensor max_pool(const Tensor& x, const Pool2dOptions& options = {},
                SourceLocation where = SourceLocation::current());

// The maximum over the whole image: [batch, channels, height, width] -> [batch, channels, 1, 1].
Tensor global_max_pool(const Tensor& x, SourceLocation where = SourceLocation::current());

// y[n, c, i, j] = the mean of x[n, c, ...] in window (i, j), over the pixels inside of the image, or with
// `count_include_pad` over the whole window.
//
// x: float32 [batch, channels, height, width]; y: [batch, channels, height', width'] with the extents that
// Padding states. Gradient: avg_pool_gradient. Throws InvalidArgument where the window does not fit, or where
// padding is as large as the window.
Tensor avg_pool(const Tensor& x, const Pool2dOptions& options = {},
                SourceLocation where = SourceLocation::current());

// The mean over the whole image: [batch, channels, height, width] -> [batch, channels, 1, 1].
Tensor global_avg_pool(const Tensor& x, SourceLocation where = SourceLocation::current());

// dx of y = max_pool(x, options): each dy is added to the element that won its window. `winner` is the second
// output of the max_pool node: only max_pool's gradient has it to give. Linear in dy; gradient:
// max_pool_gather. Throws InvalidArgument where types do not fit.
Tensor max_pool_gradient(const Shape& x_shape, const Tensor& dy, const Tensor& winner,
                         const Pool2dOptions& options, SourceLocation where = SourceLocation::current());

// The elements of x at the positions of the winners: [batch, channels, height', width']. Linear in x;
// gradient: max_pool_gradient. Throws InvalidArgument where types do not fit.
Tensor max_pool_gather(const Tensor& x, const Tensor& winner, const Pool2dOptions& options,
                       SourceLocation where = SourceLocation::current());

// dx of y = avg_pool(x, options): each dy is divided evenly over the pixels that its window counted.
// `x_shape`: the shape of x; dy: float32 of y's shape. Linear; gradient: avg_pool. Throws InvalidArgument
// where shapes do not fit.
Tensor avg_pool_gradient(const Shape& x_shape, const Tensor& dy, const Pool2dOptions& options,
                         SourceLocation where = SourceLocation::current());

}  // namespace mox
