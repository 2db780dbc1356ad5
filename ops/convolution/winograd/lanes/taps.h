// The taps of filters as vectors over channels and back (ops/processor/lanes.h). In memory the R x R taps of
// a pair of channels lie side by side, and those of the next channel of a vector `distance` floats further.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "ops/convolution/winograd/lanes/transforms.h"

namespace mox::winograd {
inline namespace MOX_LANES {

// Taps are transposed a vector of them at a time; fewer than half of one are moved by themselves.
template <int kTaps>
inline constexpr int kTransposedTaps = kTaps % kLanes < kLanes / 2 ? kTaps / kLanes* kLanes : kTaps;

// take(first, std::integral_constant<int, count>) for each group of transposed taps.
template <int kTaps, int kFirst = 0, typename Take>
inline void for_each_group(const Take& take) {
  if constexpr (kFirst < kTransposedTaps<kTaps>) {
    constexpr int kCount = std::min<int>(kLanes, kTransposedTaps<kTaps> - kFirst);
    take(kFirst, std::integral_constant<int, kCount>());
    for_each_group<kTaps, kFirst + kCount>(take);
  }
}

// taps[r * R + s] of a vector of channels.
template <int R>
void load_taps(const float* at, int64_t distance, Vector* taps) {
  constexpr int kTaps = R * R;
  for_each_group<kTaps>([&](int first, auto count) {
    Vector rows[kLanes], columns[kLanes];
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane) rows[lane] = load_first<count()>(at + lane * distance + first);
    transpose(rows, columns);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i)
      if (i < count()) taps[first + i] = columns[i];
  });
  for (int i = kTransposedTaps<kTaps>; i < kTaps; ++i) {
    alignas(64) float lanes[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = at[lane * distance + i];
    taps[i] = load(lanes);
  }
}

template <int R>
void store_taps(const Vector* taps, float* at, int64_t distance) {
  constexpr int kTaps = R * R;
  for_each_group<kTaps>([&](int first, auto count) {
    Vector rows[kLanes], columns[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) columns[i] = i < count() ? taps[first + i] : zero();
    transpose(columns, rows);
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane) store_first<count()>(at + lane * distance + first, rows[lane]);
  });
  for (int i = kTransposedTaps<kTaps>; i < kTaps; ++i) {
    alignas(64) float lanes[kLanes];
    store(lanes, taps[i]);
    for (int64_t lane = 0; lane < kLanes; ++lane) at[lane * distance + i] = lanes[lane];
  }
}

}  // namespace MOX_LANES
}  // namespace mox::winograd
