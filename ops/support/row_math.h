// Reductions of contiguous rows whose order of additions depends on the length alone, so that a row gives the
// same bits on every team and at every address.
#pragma once

#include <cstdint>
#include <limits>

namespace mox::internal {

// Partial results that are carried side by side; a multiple of the vector width, enough to hide the latency
// of an add.
inline constexpr int64_t kReductionLanes = 32;

// accumulate(i, lane_value) -> new lane value; combine folds two of them.
template <typename Accumulate, typename Combine>
inline float reduce_row(int64_t length, float start, Accumulate accumulate, Combine combine) {
  if (length < kReductionLanes) {
    float result = start;
    for (int64_t i = 0; i < length; ++i) result = accumulate(i, result);
    return result;
  }
  float lanes[kReductionLanes];
  for (float& lane : lanes) lane = start;
  int64_t i = 0;
  for (; i + kReductionLanes <= length; i += kReductionLanes)
    for (int64_t lane = 0; lane < kReductionLanes; ++lane) lanes[lane] = accumulate(i + lane, lanes[lane]);
  for (; i < length; ++i) lanes[0] = accumulate(i, lanes[0]);
  for (int64_t width = kReductionLanes / 2; width > 0; width /= 2)
    for (int64_t lane = 0; lane < width; ++lane) lanes[lane] = combine(lanes[lane], lanes[lane + width]);
  return lanes[0];
}

// NaN is passed over: the difference to the maximum brings it back.
inline float row_max(const float* row, int64_t length) {
  const auto larger = [](float a, float b) { return a > b ? a : b; };
  return reduce_row(
      length, -std::numeric_limits<float>::infinity(),
      [&](int64_t i, float best) { return larger(row[i], best); }, larger);
}

inline float add(float a, float b) { return a + b; }

inline float row_sum(const float* row, int64_t length) {
  return reduce_row(
      length, 0.0f, [&](int64_t i, float sum) { return sum + row[i]; }, add);
}

inline float row_dot(const float* a, const float* b, int64_t length) {
  return reduce_row(
      length, 0.0f, [&](int64_t i, float sum) { return sum + a[i] * b[i]; }, add);
}

// sum(row - subtrahend): loses fewer digits than a difference of sums.
inline float row_sum_of_differences(const float* row, int64_t length, float subtrahend) {
  return reduce_row(
      length, 0.0f, [&](int64_t i, float sum) { return sum + (row[i] - subtrahend); }, add);
}

}  // namespace mox::internal
