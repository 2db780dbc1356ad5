// The relation between image, filter and output of a convolution, and how images are cut for its kernels.
#pragma once

#include "ops/convolution/geometry/convolution_extents.h"
#include "ops/convolution/geometry/window.h"

namespace mox {

// x * w -> y. Every convolution op computes one of the three from the other two.
struct ConvolutionGeometry {
  TensorType x;  // [batch, channels, height, width]
  TensorType w;  // [out_channels, channels / groups, window height, window width]
  TensorType y;  // [batch, out_channels, ...]
  int64_t groups = 1;
  WindowGeometry window;

  ConvolutionExtents extents() const;  // of x and y
  double floating_point_operations() const;
};

// Parts of `tiles`, each a multiple of `step`: as few even ones as can be with about `most` in each.
int64_t even_chunk(int64_t tiles, int64_t most, int64_t step);

// The layout [batch][channels / block][height][width][block] of an image.
Layout channel_blocked(const TensorType& image, int64_t block);

}  // namespace mox
