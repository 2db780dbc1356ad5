#include "moxing/image/internal/resample_axis.h"

#include <algorithm>
#include <cmath>

namespace mox::image::internal {
namespace {

constexpr double kOne = 1 << kWeightBits;

// Weights as integers that sum to one exactly: what is rounded is their running sum, so that errors cancel
// between neighbours, however many there are.
template <typename FilterValue>
void round_weights(FilterValue&& filter_value, int count, double* exact, int16_t* weights) {
  double sum = 0;
  for (int k = 0; k < count; ++k) sum += exact[k] = filter_value(k);
  const double factor = kOne / sum;
  double running = 0;
  int before = 0;
  for (int k = 0; k < count; ++k) {
    running += exact[k];
    const int now = static_cast<int>(std::floor(running * factor + 0.5));
    weights[k] = static_cast<int16_t>(now - before);
    before = now;
  }
}

}  // namespace

AxisGeometry::AxisGeometry(Filter filter, double begin, double size, int resized)
    : origin_(std::floor(begin)),
      touched_(static_cast<int>(std::ceil(begin + size)) - origin_),
      offset_(begin - origin_),
      scale_(size / resized),
      grown_(std::max(scale_, 1.0)),
      support_((filter == Filter::kBilinear ? 1.0 : 0.5) * grown_) {}

int AxisGeometry::first(int output) const {
  return std::max(0, static_cast<int>(std::floor(centre(output) - support_ + 0.5)));
}

int AxisGeometry::end(int output) const {
  return std::min(touched_, static_cast<int>(std::floor(centre(output) + support_ + 0.5)));
}

void Axis::prepare(Filter filter, const AxisGeometry& geometry, int begin, int size) {
  first_.resize(size);
  count_.resize(size);
  const int left = geometry.first(begin);
  taps_ = 0;
  for (int i = 0; i < size; ++i) {
    const int first = geometry.first(begin + i), count = geometry.end(begin + i) - first;
    first_[i] = first - left;
    count_[i] = count;
    taps_ = std::max(taps_, count);
  }
  stride_ = (taps_ + 1) / 2 * 2;
  weights_.assign(static_cast<size_t>(size) * stride_, 0);
  exact_.resize(taps_);
  const double narrowed = 1 / geometry.grown();
  int16_t* weights = weights_.data();
  for (int i = 0; i < size; ++i, weights += stride_) {
    // Where a source pixel's middle lies as the filter sees it, computed as Pillow does: box
    // filters have borders.
    const double centre = geometry.centre(begin + i);
    const auto place = [=, from = first(i) + left](int k) { return (from + k - centre + 0.5) * narrowed; };
    if (filter == Filter::kBilinear)
      round_weights([=](int k) { return std::max(0.0, 1 - std::abs(place(k))); }, count(i), exact_.data(),
                    weights);
    else
      round_weights(
          [=](int k) {
            const double t = place(k);
            return t > -0.5 && t <= 0.5 ? 1.0 : 0.0;
          },
          count(i), exact_.data(), weights);
  }
}

}  // namespace mox::image::internal
