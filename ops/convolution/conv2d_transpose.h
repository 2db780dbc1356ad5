// Transposed convolution: a convolution that enlarges the image.
#pragma once

#include "ops/convolution/conv2d.h"

namespace mox {

struct Conv2dTransposeOptions {
  std::array<int64_t, 2> strides = {1, 1};    // how much larger the image becomes: down, right
  std::array<int64_t, 2> dilations = {1, 1};  // distance between neighbouring filter elements
  int64_t groups = 1;
  Padding padding = Padding::kSame;
  // Rows and columns more at the end. Several image sizes give the same size under a convolution with
  // strides; this chooses among them. Less than the stride; 0 for kSame.
  std::array<int64_t, 2> output_padding = {0, 0};
};

// The adjoint of conv2d in its image: y = conv2d_backprop_input(y's shape, w, x). With an extent n of x, a
// stride s and a (dilated) window k the extent of y is n * s for kSame, (n - 1) * s + k for kValid, and (n -
// 1) * s + k - before - after for explicit padding, plus output_padding.
//
// x: float32 [batch, channels, height, width]; w: float32 [channels, out_channels / groups, rows, columns];
// y: [batch, out_channels, height', width']. Gradients: conv2d and conv2d_backprop_filter.
// Throws InvalidArgument where shapes do not fit. See Dumoulin & Visin, "A guide to convolution arithmetic
// for deep learning" (2016), chapter 4.
Tensor conv2d_transpose(const Tensor& x, const Tensor& w, const Conv2dTransposeOptions& options = {},
                        SourceLocation where = SourceLocation::current());

}  // namespace mox
