#include "ops/convolution/geometry/convolution_geometry.h"

namespace mox {

ConvolutionExtents ConvolutionGeometry::extents() const {
  return {.batch = x.shape[0],
          .in_channels = x.shape[1],
          .out_channels = y.shape[1],
          .in_height = x.shape[2],
          .in_width = x.shape[3],
          .out_height = y.shape[2],
          .out_width = y.shape[3]};
}

double ConvolutionGeometry::floating_point_operations() const {
  const double products = static_cast<double>(w.shape[1] * w.shape[2]) * w.shape[3];
  return 2.0 * y.shape.elements() * products;
}

int64_t even_chunk(int64_t tiles, int64_t most, int64_t step) {
  const int64_t chunks = (tiles + most - 1) / most, share = (tiles + chunks - 1) / chunks;
  return (share + step - 1) / step * step;
}

Layout channel_blocked(const TensorType& type, int64_t block) {
  const Shape& s = type.shape;
  const int64_t pixels = s[2] * s[3];
  return Layout::blocked(type, {s[0], s[1], s[2], s[3]}, {s[1] * pixels, pixels * block, s[3] * block, block},
                         {{1, block}});
}

}  // namespace mox
