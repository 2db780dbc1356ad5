#include "moxing/image/internal/row_taps.h"

#include <algorithm>
#include <cstring>

namespace mox::image::internal {
namespace {

constexpr int kStepWeights = 32;  // of a group, in a step

}  // namespace

const RowKernels& RowTaps::prepare(const Axis& axis, bool flip, bool avx512) {
  if (avx512 && prepare_avx512(axis, flip)) return kAvx512RowKernels;
  prepare_avx2(axis, flip);
  return kAvx2RowKernels;
}

bool RowTaps::prepare_avx512(const Axis& axis, bool flip) {
  constexpr int kOutputs = 16, kVector = 32, kTap = 2;
  const int outputs = axis.size(), groups = (outputs + kOutputs - 1) / kOutputs, steps = axis.pairs();
  int32_t* const starts = starts_.take(groups);
  int16_t* weights = weights_.take(static_cast<size_t>(groups) * static_cast<size_t>(steps * kStepWeights));
  int16_t* places = places_.take(static_cast<size_t>(groups) * kVector);
  int farthest = 0;
  for (int group = 0; group < groups; ++group, places += kVector, weights += steps * kStepWeights) {
    const int here = std::min(kOutputs, outputs - group * kOutputs);
    const auto output = [&](int i) {
      const int x = group * kOutputs + i;
      return flip ? outputs - 1 - x : x;
    };
    starts[group] = std::min(axis.first(output(0)), axis.first(output(here - 1)));
    farthest =
        std::max(farthest, std::max(axis.first(output(0)), axis.first(output(here - 1))) + 1 - starts[group]);
    if (farthest + kTap * (steps - 1) >= 2 * kVector) return false;
    if (here < kOutputs) {
      std::fill_n(places, kVector, int16_t{0});
      std::fill_n(weights, steps * kStepWeights, int16_t{0});
    }
    for (int i = 0; i < here; ++i) {
      const auto place = static_cast<int16_t>(axis.first(output(i)) - starts[group]);
      places[kTap * i] = place;
      places[kTap * i + 1] = static_cast<int16_t>(place + 1);
      for (int step = 0; step < steps; ++step)
        std::memcpy(&weights[step * kStepWeights + kTap * i], axis.weights(output(i)) + kTap * step,
                    kTap * sizeof(int16_t));
    }
  }
  view_ = {outputs, steps, starts, weights_.data(), places_.data(), farthest + kTap * (steps - 1) >= kVector};
  return true;
}

void RowTaps::prepare_avx2(const Axis& axis, bool flip) {
  constexpr int kOutputs = 8, kTap = 4;
  constexpr int kPlaceOf[kOutputs] = {0, 4, 16, 20, 8, 12, 24, 28};  // of an output's weights in a step
  const int outputs = axis.size(), groups = (outputs + kOutputs - 1) / kOutputs,
            steps = (axis.taps() + kTap - 1) / kTap;
  const auto all = static_cast<size_t>(groups) * static_cast<size_t>(steps * kStepWeights);
  int32_t* const starts = starts_.take(groups * kOutputs);
  int16_t* const weights = weights_.take(all);
  std::fill_n(starts, groups * kOutputs, 0);
  std::fill_n(weights, all, int16_t{0});
  for (int x = 0; x < outputs; ++x) {
    const int i = flip ? outputs - 1 - x : x;
    starts[x] = axis.first(i);
    int16_t* const own = weights + static_cast<ptrdiff_t>(x / kOutputs) * steps * kStepWeights;
    for (int k = 0; k < axis.count(i); ++k)
      own[k / kTap * kStepWeights + kPlaceOf[x % kOutputs] + k % kTap] = axis.weights(i)[k];
  }
  view_ = {outputs, steps, starts, weights, nullptr, false};
}

}  // namespace mox::image::internal
