// The moments of what Winograd's convolutions store, for the winograd_*avx512.cc alone: needs AVX-512.
#pragma once

#include <immintrin.h>

#include "ops/internal/winograd_tiles.h"
#include "ops/internal/winograd_transforms.h"

namespace mox::winograd {

// Of one group of tiles: [3][channels], how many pixels, their mean and the sum of their squared distances from it. Sums are taken of
// distances from the group's first pixel, so nothing cancels where the mean is large beside the deviation. Until finish() the
// three rows are that pixel, the sum and the sum of squares.
class Moments {
 public:
  Moments(float* rows, int64_t channels) : rows_(rows), channels_(channels) {}

  // Pixels [0, rows) x [0, columns) of M x M results of this block of channels. The tiles of a block come one after the other.
  template <int M>
  void add(int64_t block, const Vector* results, int64_t rows, int64_t columns) {
    float* at = rows_ + block * kLanes;
    const bool is_first = pixels_ == 0;
    const Vector pivot = is_first ? results[0] : _mm512_loadu_ps(at);
    Vector sum = is_first ? _mm512_setzero_ps() : _mm512_loadu_ps(at + channels_);
    Vector squares = is_first ? _mm512_setzero_ps() : _mm512_loadu_ps(at + 2 * channels_);
    if (is_first) _mm512_storeu_ps(at, pivot);
    if (rows == M && columns == M) {
      add_rows<M>(results, pivot, &sum, &squares);
    } else {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          const Vector distance = results[i * M + j] - pivot;
          sum = sum + distance;
          squares = _mm512_fmadd_ps(distance, distance, squares);
        }
    }
    _mm512_storeu_ps(at + channels_, sum);
    _mm512_storeu_ps(at + 2 * channels_, squares);
  }
  // That all blocks of a tile of so many pixels are added.
  void advance(int64_t pixels) { pixels_ += pixels; }

  void finish() {
    const Vector pixels = splat(static_cast<float>(pixels_));
    for (float* at = rows_; at < rows_ + channels_; at += kLanes) {
      const Vector sum = _mm512_loadu_ps(at + channels_), mean = sum / pixels;
      const Vector squares = _mm512_fnmadd_ps(sum, mean, _mm512_loadu_ps(at + 2 * channels_));
      _mm512_storeu_ps(at + channels_, _mm512_loadu_ps(at) + mean);
      // Rounding may leave a little less than nothing. NaN stays.
      _mm512_storeu_ps(at + 2 * channels_, _mm512_maskz_max_ps(0xffff, _mm512_setzero_ps(), squares));
      _mm512_storeu_ps(at, pixels);
    }
  }

 private:
  // Row by row, so that no sum waits for the one before it.
  template <int M>
  static void add_rows(const Vector* results, Vector pivot, Vector* sum, Vector* squares) {
    Vector sums[M], products[M];
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      sums[i] = results[i * M] - pivot;
      products[i] = sums[i] * sums[i];
    }
#pragma GCC unroll 8
    for (int j = 1; j < M; ++j)
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        const Vector distance = results[i * M + j] - pivot;
        sums[i] = sums[i] + distance;
        products[i] = _mm512_fmadd_ps(distance, distance, products[i]);
      }
#pragma GCC unroll 8
    for (int i = 1; i < M; ++i) {
      sums[0] = sums[0] + sums[i];
      products[0] = products[0] + products[i];
    }
    *sum = *sum + sums[0];
    *squares = *squares + products[0];
  }

  float* rows_;
  int64_t channels_, pixels_ = 0;
};

// Of the group that is this chunk; null if there are none.
inline float* moments_of_chunk(const Problem& p, float* moments, int64_t chunk) {
  return moments ? moments + chunk * 3 * p.out_channels : nullptr;
}

}  // namespace mox::winograd
