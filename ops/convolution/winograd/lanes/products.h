// The matrix products of Winograd's convolutions (ops/processor/lanes.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/convolution/winograd/lanes/transforms.h"

namespace mox::winograd {
inline namespace MOX_LANES {

// What a term of a sum is: a number, or two bfloat16 numbers in the place of one, the first in its lower
// half, whose products are added up in float32.
struct Singles {
  static Vector add_product(Vector sum, Vector a, Vector b) { return multiply_add(a, b, sum); }
};
#ifdef __AVX512BF16__
struct Pairs {
  static Vector add_product(Vector sum, Vector a, Vector b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};
#endif

// What the tiles are in a product: rows of its left matrix, whose terms lie side by side, or its terms, with
// the rows side by side. What is known when this is compiled lets the loops address without multiplications.
enum class TilesAre { kRows, kTerms };

// Loops over sums are unrolled by pragma where they fill and store them: left to the end, GCC keeps the sums
// on the stack. c[Rows][kLanes * Vectors] (+)= sum over k of a(row, k) * b[k][...]; a's rows or terms lie
// `a_stride` floats apart. What lies in c is taken in where tiles are the terms.
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
    for (int v = 0; v < Vectors; ++v) sum[r][v] = zero();
  for (int64_t i = 0; i < k; ++i, a += a_k, b += b_k) {
    Vector line[Vectors];
    for (int v = 0; v < Vectors; ++v) line[v] = load(b + v * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const Vector scalar = splat(a[r * a_row]);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = Terms::add_product(sum[r][v], scalar, line[v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* to = c + r * c_row + v * kLanes;
      store(to, adds ? load(to) + sum[r][v] : sum[r][v]);
    }
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

// The widest block of columns that stays in registers while tiles are the rows.
inline constexpr int kWidest = kRegisters >= 32 ? 4 : 2;

// `columns` is a multiple of kLanes; `rows` of 6 (tiles) or of kLanes (channels).
template <typename Terms, TilesAre kTiles>
void multiply(const float* a, int64_t a_stride, const float* b, int64_t b_k, float* c, int64_t c_row,
              int64_t rows, int64_t columns, int64_t k, bool accumulate) {
  constexpr bool kHasRows = kTiles == TilesAre::kRows;
  if constexpr (kRegisters >= 32) {
    // More rows of tiles than six would need more addresses than there are registers for them. Of channels
    // there are as many as make 16 sums: a processor that begins two a cycle, each of which takes four, has
    // to have more than eight of them under way.
    const auto blocks = columns % (4 * kLanes) == 0 ? multiply_blocks < Terms, kTiles, kHasRows ? 6 : 4,
               4 > : columns % (3 * kLanes) == 0 ? multiply_blocks < Terms, kTiles, kHasRows ? 6 : 8,
               3 > : columns % (2 * kLanes) == 0 ? multiply_blocks < Terms, kTiles, kHasRows ? 6 : 8,
               2 >                               : multiply_blocks < Terms, kTiles, kHasRows ? 6 : 16, 1 > ;
    blocks(a, a_stride, b, b_k, c, c_row, rows, columns, k, accumulate);
  } else if constexpr (kHasRows) {
    // Of 16 registers twelve are sums.
    const auto blocks = columns % (2 * kLanes) == 0 ? multiply_blocks<Terms, kTiles, 6, 2>
                                                    : multiply_blocks<Terms, kTiles, 6, 1>;
    blocks(a, a_stride, b, b_k, c, c_row, rows, columns, k, accumulate);
  } else {
    // Eight sums, for any number of channels: pairs of vectors, and the last one by itself.
    const int64_t pairs = columns / (2 * kLanes) * 2 * kLanes;
    multiply_blocks<Terms, kTiles, 4, 2>(a, a_stride, b, b_k, c, c_row, rows, pairs, k, accumulate);
    multiply_blocks<Terms, kTiles, 8, 1>(a, a_stride, b + pairs, b_k, c + pairs, c_row, rows, columns - pairs,
                                         k, accumulate);
  }
}

// c = a x b for tiles of K channels, side by side: what multiply<Singles, TilesAre::kRows> does, faster,
// since all addresses of a lie at distances that are known. `rows` is a multiple of 12.
template <int K, int Rows, int Vectors>
void multiply_dense_blocks(const float* a, const float* b, float* c, int64_t rows, int64_t columns) {
  for (int64_t n = 0; n < columns; n += Vectors * kLanes)
    for (int64_t row = 0; row < rows; row += Rows) {
      const float *scalars = a + row * K, *lines = b + n;
      Vector sum[Rows][Vectors];
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) sum[r][v] = zero();
#pragma GCC unroll 1
      for (int k = 0; k < K; ++k, ++scalars, lines += columns) {
        Vector line[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) line[v] = load(lines + v * kLanes);
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v)
            sum[r][v] = Singles::add_product(sum[r][v], splat(scalars[r * K]), line[v]);
      }
      float* to = c + row * columns + n;
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) store(to + r * columns + v * kLanes, sum[r][v]);
    }
}

// The same for 16 channels on both sides, with 32 registers: all of b stays in them.
template <int Rows>
void multiply_sixteen(const float* a, const float* b, float* c, int64_t rows) {
  Vector line[kLanes];
#pragma GCC unroll 16
  for (int k = 0; k < kLanes; ++k) line[k] = load(b + k * kLanes);
  for (int64_t row = 0; row < rows; row += Rows, a += Rows * kLanes, c += Rows * kLanes) {
    Vector sum[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) sum[r] = zero();
#pragma GCC unroll 16
    for (int k = 0; k < kLanes; ++k)
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) sum[r] = Singles::add_product(sum[r], splat(a[r * kLanes + k]), line[k]);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) store(c + r * kLanes, sum[r]);
  }
}

template <int K>
void multiply_dense(const float* a, const float* b, float* c, int64_t rows, int64_t columns) {
  constexpr int kUneven = kRegisters >= 32 ? 8 : 4;  // rows at a time, where there are not whole twelves
  if (rows % 12 != 0)
    return columns % (2 * kLanes) == 0 ? multiply_dense_blocks<K, kUneven, 2>(a, b, c, rows, columns)
                                       : multiply_dense_blocks<K, 8, 1>(a, b, c, rows, columns);
  if constexpr (kRegisters >= 32) {
    const auto blocks = columns % (4 * kLanes) == 0   ? multiply_dense_blocks<K, 6, 4>
                        : columns % (3 * kLanes) == 0 ? multiply_dense_blocks<K, 6, 3>
                        : columns % (2 * kLanes) == 0 ? multiply_dense_blocks<K, 6, 2>
                                                      : multiply_dense_blocks<K, 12, 1>;
    blocks(a, b, c, rows, columns);
  } else {
    const auto blocks =
        columns % (2 * kLanes) == 0 ? multiply_dense_blocks<K, 6, 2> : multiply_dense_blocks<K, 12, 1>;
    blocks(a, b, c, rows, columns);
  }
}

// c [rows][columns] = a [rows][k] x b [k][columns]: `rows` is a multiple of 12, or of 8 if k is 16 or 32;
// `columns` of kLanes.
inline void multiply_tiles(const float* a, const float* b, float* c, int64_t rows, int64_t columns,
                           int64_t k) {
  if constexpr (kRegisters >= 32) {
    if (k == 16 && columns == 16)
      return rows % 12 == 0 ? multiply_sixteen<12>(a, b, c, rows) : multiply_sixteen<8>(a, b, c, rows);
  }
  if (k == 16) return multiply_dense<16>(a, b, c, rows, columns);
  if (k == 32) return multiply_dense<32>(a, b, c, rows, columns);
  if (k == 64) return multiply_dense<64>(a, b, c, rows, columns);
  if (k == 128) return multiply_dense<128>(a, b, c, rows, columns);
  multiply<Singles, TilesAre::kRows>(a, k, b, columns, c, columns, rows, columns, k, false);
}

// Whether c may be a there: a block of rows is made whole before any of it is written, and of nothing but the
// same rows.
inline bool can_be_in_place(int64_t columns, int64_t k) {
  return columns == k && k <= kWidest * kLanes && (k == 16 || k == 32 || k == 64);
}

// c [Rows][Columns] (+)= the sum over k tiles of a [k][Rows]^T x b [k][Columns]: what multiply<Singles,
// TilesAre::kTerms> does, faster, since all distances are known.
template <int Rows, int Columns>
void accumulate_dense(const float* a, const float* b, float* c, int64_t k, bool accumulate) {
  constexpr int kVectors = kRegisters < 32     ? 2
                           : Columns % 64 == 0 ? 4
                                               : Columns / kLanes,
                kRows = kRegisters < 32 || kVectors == 4 ? 4 : 16 / kVectors;
  for (int64_t n = 0; n < Columns; n += kVectors * kLanes)
    for (int64_t row = 0; row < Rows; row += kRows) {
      float* to = c + row * Columns + n;
      Vector sum[kRows][kVectors];
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[r][v] = zero();
      const float *scalars = a + row, *lines = b + n;
#pragma GCC unroll 2
      for (int64_t i = 0; i < k; ++i, scalars += Rows, lines += Columns) {
        Vector line[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) line[v] = load(lines + v * kLanes);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v)
            sum[r][v] = Singles::add_product(sum[r][v], splat(scalars[r]), line[v]);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          float* at = to + r * Columns + v * kLanes;
          store(at, accumulate ? load(at) + sum[r][v] : sum[r][v]);
        }
    }
}

// c [rows][columns] (+)= the sum over k tiles of a [k][rows]^T x b [k][columns]; rows and columns are
// multiples of kLanes.
inline void accumulate_tiles(const float* a, const float* b, float* c, int64_t rows, int64_t columns,
                             int64_t k, bool accumulate) {
  if (rows == columns) {
    if (rows == 16) return accumulate_dense<16, 16>(a, b, c, k, accumulate);
    if (rows == 32) return accumulate_dense<32, 32>(a, b, c, k, accumulate);
    if (rows == 64) return accumulate_dense<64, 64>(a, b, c, k, accumulate);
  }
  multiply<Singles, TilesAre::kTerms>(a, rows, b, columns, c, columns, rows, columns, k, accumulate);
}

}  // namespace MOX_LANES
}  // namespace mox::winograd
