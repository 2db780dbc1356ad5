// The weights of a resampling along one axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "moxing/image/resample.h"

namespace mox::image::internal {

constexpr int kWeightBits = 14;

// Which source pixels count in which output pixel. Positions count from the first source pixel that the
// region touches.
class AxisGeometry {
 public:
  // Of a region that starts at `begin` and is `size` long, resized to `resized` pixels.
  AxisGeometry(Filter filter, double begin, double size, int resized);

  double centre(int output) const { return offset_ + (output + 0.5) * scale_; }
  int first(int output) const;
  int end(int output) const;
  int origin() const { return origin_; }   // the first pixel that the region touches, in the image
  double grown() const { return grown_; }  // the filter's width in source pixels, 1 at least

 private:
  int origin_, touched_;
  double offset_, scale_, grown_, support_;
};

// For each output pixel, the source pixels [first, first + count) and their weights, which are not negative
// and sum to 1 << kWeightBits.
class Axis {
 public:
  // For outputs [begin, begin + size). Positions count from the first source pixel that is needed.
  void prepare(Filter filter, const AxisGeometry& geometry, int begin, int size);

  int size() const { return first_.size(); }
  int first(int i) const { return first_[i]; }
  int count(int i) const { return count_[i]; }
  int end(int i) const { return first(i) + count(i); }
  int needed() const { return end(size() - 1); }  // source pixels
  int taps() const { return taps_; }              // the largest count
  int pairs() const { return stride_ / 2; }       // of weights that each output has, zeros behind its own
  const int16_t* weights(int i) const { return &weights_[i * stride_]; }

 private:
  int taps_ = 0, stride_ = 0;
  std::vector<int> first_, count_;
  std::vector<int16_t> weights_;
  std::vector<double> exact_;
};

}  // namespace mox::image::internal
