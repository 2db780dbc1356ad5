// The extents of a convolution's images by name, as kernels compute with them.
#pragma once

#include <cstdint>

namespace mox {

struct ConvolutionExtents {
  int64_t batch = 0, in_channels = 0, out_channels = 0;
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
};

}  // namespace mox
