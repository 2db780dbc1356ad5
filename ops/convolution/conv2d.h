// Two-dimensional convolution.
#pragma once

#include <array>

#include "ops/convolution/geometry/padding.h"
#include "runtime/graph/op.h"

namespace mox {

struct Conv2dOptions {
  std::array<int64_t, 2> strides = {1, 1};    // down, right
  std::array<int64_t, 2> dilations = {1, 1};  // distance between neighbouring filter elements
  int64_t groups = 1;                         // = channels: a depthwise convolution
  Padding padding = Padding::kSame;
};

// y[n, o, i, j] = sum over c, p, q of w[o, c, p, q] * x[n, c', i * stride + p * dilation - before, j ...]
// (a cross-correlation, as in every framework), with zeros outside of the image; c' are the channels of o's
// group.
//
// x: float32 [batch, channels, height, width]; w: float32 [out_channels, channels / groups, rows, columns];
// y: [batch, out_channels, height', width'] with the extents that Padding states.
// Gradients: conv2d_backprop_input and conv2d_backprop_filter. Throws InvalidArgument where shapes do not
// fit.
Tensor conv2d(const Tensor& x, const Tensor& w, const Conv2dOptions& options = {},
              SourceLocation where = SourceLocation::current());

}  // namespace mox
