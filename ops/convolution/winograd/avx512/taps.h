// The taps of filters as vectors over channels and back, for the winograd_*avx512.cc alone: needs AVX-512. In
// memory the R x R taps of a pair of channels lie side by side, and those of the next channel of a vector
// `distance` floats further.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/convolution/winograd/avx512/transforms.h"

namespace mox::winograd {

// columns[i][j] of 16 rows of 16 values, in place of rows[j][i].
inline void transpose(const Vector* rows, Vector* columns) {
  Vector pairs[kLanes], fours[kLanes], eights[kLanes];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_maskz_unpacklo_ps(0xffff, rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_maskz_unpackhi_ps(0xffff, rows[i], rows[i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const __m512d a = _mm512_castps_pd(pairs[i + j]), b = _mm512_castps_pd(pairs[i + 2 + j]);
      fours[i + 2 * j] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xff, a, b));
      fours[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xff, a, b));
    }
    // fours[4 * g + c]: of rows 4 * g to 4 * g + 3 the values c, c + 4, c + 8 and c + 12, in a quarter of the
    // vector each.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    eights[c] = _mm512_maskz_shuffle_f32x4(0xffff, fours[c], fours[4 + c], 0x88);
    eights[4 + c] = _mm512_maskz_shuffle_f32x4(0xffff, fours[c], fours[4 + c], 0xdd);
    eights[8 + c] = _mm512_maskz_shuffle_f32x4(0xffff, fours[8 + c], fours[12 + c], 0x88);
    eights[12 + c] = _mm512_maskz_shuffle_f32x4(0xffff, fours[8 + c], fours[12 + c], 0xdd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    columns[c] = _mm512_maskz_shuffle_f32x4(0xffff, eights[c], eights[8 + c], 0x88);
    columns[8 + c] = _mm512_maskz_shuffle_f32x4(0xffff, eights[c], eights[8 + c], 0xdd);
    columns[4 + c] = _mm512_maskz_shuffle_f32x4(0xffff, eights[4 + c], eights[12 + c], 0x88);
    columns[12 + c] = _mm512_maskz_shuffle_f32x4(0xffff, eights[4 + c], eights[12 + c], 0xdd);
  }
}

// taps[r * R + s] of 16 channels.
template <int R>
void load_taps(const float* at, int64_t distance, Vector* taps) {
  if constexpr (R * R <= kLanes) {
    Vector rows[kLanes], columns[kLanes];
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane)
      rows[lane] = _mm512_maskz_loadu_ps((1 << R * R) - 1, at + lane * distance);
    transpose(rows, columns);
#pragma GCC unroll 16
    for (int i = 0; i < R * R; ++i) taps[i] = columns[i];
  } else {
    alignas(64) float lanes[R * R][kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < R * R; ++i) lanes[i][lane] = at[lane * distance + i];
    for (int i = 0; i < R * R; ++i) taps[i] = _mm512_load_ps(lanes[i]);
  }
}

template <int R>
void store_taps(const Vector* taps, float* at, int64_t distance) {
  if constexpr (R * R <= kLanes) {
    Vector rows[kLanes], columns[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) columns[i] = i < R * R ? taps[i] : _mm512_setzero_ps();
    transpose(columns, rows);
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane)
      _mm512_mask_storeu_ps(at + lane * distance, (1 << R * R) - 1, rows[lane]);
  } else {
    alignas(64) float lanes[kLanes];
    for (int i = 0; i < R * R; ++i) {
      _mm512_store_ps(lanes, taps[i]);
      for (int64_t lane = 0; lane < kLanes; ++lane) at[lane * distance + i] = lanes[lane];
    }
  }
}

}  // namespace mox::winograd
