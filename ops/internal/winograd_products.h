// The matrix products of Winograd's convolutions, for winograd_avx512.cc and winograd_bf16_avx512.cc alone: needs AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/internal/winograd_transforms.h"

namespace mox::winograd {

// What a term of a sum is: a number, or two bfloat16 numbers in the place of one, the first in its lower half, whose products are added
// up in float32.
struct Singles {
  static Vector add_product(Vector sum, Vector a, Vector b) { return _mm512_fmadd_ps(a, b, sum); }
};
#ifdef __AVX512BF16__
struct Pairs {
  static Vector add_product(Vector sum, Vector a, Vector b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};
#endif

// What the tiles are in a product: rows of its left matrix, whose terms lie side by side, or its terms, with the rows side by
// side. What is known when this is compiled lets the loops address without multiplications.
enum class TilesAre { kRows, kTerms };

// Loops over sums are unrolled by pragma where they fill and store them: left to the end, GCC keeps the sums on the stack.
// c[Rows][16 * Vectors] (+)= sum over k of a(row, k) * b[k][...]; a's rows or terms lie `a_stride` floats apart. What lies in c
// is taken in where tiles are the terms.
template <typename Terms, TilesAre kTiles, int Rows, int Vectors>
inline void multiply_block(const float* a, int64_t a_stride, const float* b, int64_t b_k, float* c,
                           int64_t c_row, int64_t k, bool accumulate) {
  const int64_t a_row = kTiles == TilesAre::kRows ? a_stride : 1;
  const int64_t a_k = kTiles == TilesAre::kRows ? 1 : a_stride;
  const bool adds = kTiles == TilesAre::kTerms && accumulate;
  Vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = adds ? _mm512_loadu_ps(c + r * c_row + v * kLanes) : _mm512_setzero_ps();
  for (int64_t i = 0; i < k; ++i, a += a_k, b += b_k) {
    Vector line[Vectors];
    for (int v = 0; v < Vectors; ++v) line[v] = _mm512_loadu_ps(b + v * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const Vector scalar = splat(a[r * a_row]);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = Terms::add_product(sum[r][v], scalar, line[v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) _mm512_storeu_ps(c + r * c_row + v * kLanes, sum[r][v]);
}

template <typename Terms, TilesAre kTiles, int Rows, int Vectors>
void multiply_blocks(const float* a, int64_t a_stride, const float* b, int64_t b_k, float* c, int64_t c_row,
                     int64_t rows, int64_t columns, int64_t k, bool accumulate) {
  const int64_t a_row = kTiles == TilesAre::kRows ? a_stride : 1;
  for (int64_t n = 0; n < columns; n += Vectors * kLanes)
    for (int64_t r = 0; r < rows; r += Rows)
      multiply_block<Terms, kTiles, Rows, Vectors>(a + r * a_row, a_stride, b + n, b_k, c + r * c_row + n,
                                                   c_row, k, accumulate);
}

// `columns` is a multiple of 16; `rows` of 12 (tiles) or of 16 (channels).
template <typename Terms, TilesAre kTiles>
void multiply(const float* a, int64_t a_stride, const float* b, int64_t b_k, float* c, int64_t c_row,
              int64_t rows, int64_t columns, int64_t k, bool accumulate) {
  // More rows of tiles than six would need more addresses than there are registers for them.
  constexpr int kWide = kTiles == TilesAre::kRows ? 6 : 4, kNarrow = kTiles == TilesAre::kRows ? 6 : 8;
  const auto blocks = columns % (4 * kLanes) == 0   ? multiply_blocks<Terms, kTiles, kWide, 4>
                      : columns % (3 * kLanes) == 0 ? multiply_blocks<Terms, kTiles, kWide, 3>
                      : columns % (2 * kLanes) == 0 ? multiply_blocks<Terms, kTiles, kNarrow, 2>
                                                    : multiply_blocks<Terms, kTiles, kNarrow, 1>;
  blocks(a, a_stride, b, b_k, c, c_row, rows, columns, k, accumulate);
}

}  // namespace mox::winograd
