// Options that max_pool and avg_pool share.
#pragma once

#include <array>

#include "ops/convolution/geometry/padding.h"

namespace mox {

struct Pool2dOptions {
  std::array<int64_t, 2> window = {2, 2};   // height, width
  std::array<int64_t, 2> strides = {2, 2};  // down, right
  Padding padding = Padding::kValid;
  bool count_include_pad = false;  // avg_pool: padding counts as zeros in the mean (false, as in TensorFlow)
};

}  // namespace mox
