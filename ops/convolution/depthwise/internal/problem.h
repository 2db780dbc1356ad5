// What the kernels of depthwise.h share: the convolution in numbers, and what is per channel.
#pragma once

#include <algorithm>

#include "ops/convolution/depthwise/depthwise.h"
#include "ops/convolution/depthwise/internal/rows.h"

namespace mox::depthwise {

constexpr int64_t kLanes = 8;

struct Problem {
  int64_t batch, blocks;  // of channels
  int64_t height, width, out_height, out_width;
  int64_t before_y, before_x, stride;

  explicit Problem(const ConvolutionGeometry& g)
      : batch(g.x.shape[0]),
        blocks(g.x.shape[1] / kLanes),
        height(g.x.shape[2]),
        width(g.x.shape[3]),
        out_height(g.y.shape[2]),
        out_width(g.y.shape[3]),
        before_y(g.window[0].before),
        before_x(g.window[1].before),
        stride(g.window[0].stride) {}

  int64_t channels() const { return blocks * kLanes; }
  int64_t planes() const { return batch * blocks; }
  int64_t image_floats() const { return height * width * kLanes; }  // of a plane
  int64_t y_floats() const { return out_height * out_width * kLanes; }
};

// The row that begins at float `at` of `all`, or the last one.
inline const float* row_within(const float* floats, int64_t at, int64_t row, int64_t all) {
  return floats + std::max<int64_t>(0, std::min(at, all - row));
}

constexpr int64_t kTaps = kWindow * kWindow;

// Per channel, in this order in the scratch memory: what x is normalised with, and the filter, [block][9][8].
struct ChannelNumbers {
  float *factor, *filter;

  static int64_t floats(const Problem& p) { return (1 + kTaps) * p.channels(); }
  ChannelNumbers(float* memory, const Problem& p) : factor(memory), filter(memory + p.channels()) {}

  const float* filter_of(int64_t block) const { return filter + block * kTaps * kLanes; }

  void set(const Problem& p, const float* filters, const float* scale, const float* variance,
           double epsilon) const {
    for (int64_t c = 0; c < p.channels(); ++c) {
      factor[c] = normalisation::channel_factor(scale[c], variance[c], epsilon);
      for (int64_t tap = 0; tap < kTaps; ++tap)
        filter[(c / kLanes * kTaps + tap) * kLanes + c % kLanes] = filters[c * kTaps + tap];
    }
  }
};

}  // namespace mox::depthwise
