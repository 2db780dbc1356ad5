// What the gradient of batch normalisation takes from the sums of dz and of dz * (x - mean).
#pragma once

#include <cmath>
#include <cstdint>

namespace mox::normalisation {

// Of one channel: dx = (dz - mean_dz - (x - mean) * slope) * factor, and the gradients of scale and offset.
struct ChannelGradient {
  float mean_dz, slope, dscale, doffset;

  ChannelGradient(double sum, double product, int64_t values, float variance, double epsilon) {
    const double square = static_cast<double>(variance) + epsilon, count = values;
    mean_dz = sum / count;
    slope = product / count / square;
    dscale = product / std::sqrt(square);
    doffset = sum;
  }
};

}  // namespace mox::normalisation
