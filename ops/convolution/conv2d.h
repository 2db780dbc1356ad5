// Two-dimensional convolution, its gradients and its transpose.
#pragma once

#include <array>

#include "ops/convolution/geometry/padding.h"
#include "runtime/graph/op.h"

namespace mox {

struct ConvolutionOptions {
  std::array<int64_t, 2> strides = {1, 1};    // down, right
  std::array<int64_t, 2> dilations = {1, 1};  // distance between neighbouring filter elements
  int64_t groups = 1;                         // = channels: a depthwise convolution
  Padding padding = Padding::kSame;
};

// y[n, o, i, j] = sum over c, p, q of w[o, c, p, q] * x[n, c', i * stride + p * dilation - before, j ...]
// (a cross-correlation, as in every framework), with zeros outside of the image; c' are the
// channels of o's group.
//
// x: float32 [batch, channels, height, width]; w: float32 [out_channels, channels / groups, rows, columns];
// y: [batch, out_channels, height', width'] with the extents that Padding states.
// Gradients: conv2d_input_gradient and conv2d_filter_gradient. Throws InvalidArgument where
// shapes do not fit.
Tensor conv2d(const Tensor& x, const Tensor& w, const ConvolutionOptions& options = {},
              SourceLocation where = SourceLocation::current());

// dx of y = conv2d(x, w, options), given dy: dx[n, c, ...] sums w[o, c, p, q] * dy[n, o, ...] over every
// position that x[n, c, ...] went into. `x_shape`: the shape of x; dy: float32 of y's shape. Linear in w and
// dy; gradients: conv2d_filter_gradient and conv2d. Throws InvalidArgument where shapes do not fit.
Tensor conv2d_input_gradient(const Shape& x_shape, const Tensor& w, const Tensor& dy,
                             const ConvolutionOptions& options = {},
                             SourceLocation where = SourceLocation::current());

// dw of y = conv2d(x, w, options), given dy: dw[o, c, p, q] sums x[n, c, ...] * dy[n, o, ...] over batch and
// positions. `w_shape`: the shape of w; dy: float32 of y's shape. oneDNN cuts the sum over the batch by the
// number of threads: teams of different sizes agree within rounding. Linear in x and dy; gradients:
// conv2d_input_gradient and conv2d. Throws InvalidArgument where shapes do not fit.
Tensor conv2d_filter_gradient(const Tensor& x, const Shape& w_shape, const Tensor& dy,
                              const ConvolutionOptions& options = {},
                              SourceLocation where = SourceLocation::current());

struct TransposedConvolutionOptions {
  std::array<int64_t, 2> strides = {1, 1};    // how much larger the image becomes: down, right
  std::array<int64_t, 2> dilations = {1, 1};  // distance between neighbouring filter elements
  int64_t groups = 1;
  Padding padding = Padding::kSame;
  // Rows and columns more at the end. Several image sizes give the same size under a convolution with
  // strides; this chooses among them. Less than the stride; 0 for kSame.
  std::array<int64_t, 2> output_padding = {0, 0};
};

// The adjoint of conv2d in its image: y = conv2d_input_gradient(y's shape, w, x). With an extent n of x, a
// stride s and a (dilated) window k the extent of y is n * s for kSame, (n - 1) * s + k for kValid, and (n -
// 1) * s + k - before - after for explicit padding, plus output_padding.
//
// x: float32 [batch, channels, height, width]; w: float32 [channels, out_channels / groups, rows, columns];
// y: [batch, out_channels, height', width']. Gradients: conv2d and conv2d_filter_gradient.
// Throws InvalidArgument where shapes do not fit. See Dumoulin & Visin, "A guide to convolution arithmetic
// for deep learning" (2016), chapter 4.
Tensor conv2d_transpose(const Tensor& x, const Tensor& w, const TransposedConvolutionOptions& options = {},
                        SourceLocation where = SourceLocation::current());

}  // namespace mox
