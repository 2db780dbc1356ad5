// The transforms of Winograd's minimal filtering on vectors of 16 channels, for winograd_avx512.cc and winograd_wide_avx512.cc alone:
// needs AVX-512.
//
// B^T's row of a finite point a_i holds the coefficients of the product of (x - a_j) over the other finite points, that of
// infinity those of the product over all of them; A's column is 1, a_i, a_i^2, ...; G's row is the same divided by the
// product of (a_i - a_j). For 8 points B^T's row of the point 0 is negated, and with it G's.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/internal/winograd_tiles.h"

namespace mox::winograd {

using Vector = __m512;

inline Vector splat(float value) { return _mm512_set1_ps(value); }

constexpr float power(float base, int exponent) {
  float result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

// The finite points and what G's rows are scaled by.
template <int Tile>
struct Points;
template <>
struct Points<6> {
  static constexpr float at[5] = {0, 1, -1, 2, -2};
  static constexpr float scale[5] = {1.0f / 4, -1.0f / 6, -1.0f / 6, 1.0f / 24, 1.0f / 24};
};
template <>
struct Points<8> {
  static constexpr float at[7] = {0, 1, -1, 2, -2, 0.5f, -0.5f};
  static constexpr float scale[7] = {1, -2.0f / 9, -2.0f / 9, 1.0f / 90, 1.0f / 90, 32.0f / 45, 32.0f / 45};
};

// G: Tile x N, what turns N values into Tile; A: N x Tile, what turns Tile products into N results.
template <int Tile, int N>
struct Matrices {
  float g[Tile][N], a[N][Tile];
  constexpr Matrices() : g(), a() {
    for (int n = 0; n < N; ++n) {
      for (int i = 0; i < Tile - 1; ++i) {
        g[i][n] = power(Points<Tile>::at[i], n) * Points<Tile>::scale[i];
        a[n][i] = power(Points<Tile>::at[i], n);
      }
      g[Tile - 1][n] = a[n][Tile - 1] = n == N - 1 ? 1.0f : 0.0f;
    }
  }
};
template <int Tile, int N>
inline constexpr Matrices<Tile, N> kMatrices{};

// sum over k of coefficient[k] * value[k * stride], zeros left out (the loop unrolls: coefficients are constants).
template <int Count>
inline Vector combine(const float (&coefficient)[Count], const Vector* value, int stride) {
  Vector sum = _mm512_setzero_ps();
#pragma GCC unroll 8
  for (int k = 0; k < Count; ++k)
    if (coefficient[k] != 0) sum = _mm512_fmadd_ps(splat(coefficient[k]), value[k * stride], sum);
  return sum;
}

// The results of A for points in pairs a, -a: their sum serves the even powers, their difference the odd ones.
template <int Tile, int N>
inline void combine_products(const Vector* m, int stride, Vector* result, int result_stride) {
  constexpr int kPairs = (Tile - 2) / 2;
  Vector sum[kPairs], difference[kPairs];
#pragma GCC unroll 8
  for (int i = 0; i < kPairs; ++i) {
    const Vector plus = m[(1 + 2 * i) * stride], minus = m[(2 + 2 * i) * stride];
    sum[i] = plus + minus;
    difference[i] = plus - minus;
  }
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) {
    Vector total = n % 2 == 0 ? sum[0] : difference[0];  // the first pair is 1, -1
#pragma GCC unroll 8
    for (int i = 1; i < kPairs; ++i)
      total = _mm512_fmadd_ps(splat(power(Points<Tile>::at[1 + 2 * i], n)),
                              n % 2 == 0 ? sum[i] : difference[i], total);
    if (n == 0) total = total + m[0];
    if (n == N - 1) total = total + m[(Tile - 1) * stride];
    result[n * result_stride] = total;
  }
}

// B^T applied to values that lie `stride` apart, in place.
template <int Tile>
void transform_line(Vector* d, int stride);
template <>
inline void transform_line<6>(Vector* d, int stride) {
  const Vector four = splat(4), five = splat(5), two = splat(2);
  const Vector d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride], d4 = d[4 * stride],
               d5 = d[5 * stride];
  const Vector even = _mm512_fnmadd_ps(four, d2, d4), odd = _mm512_fnmadd_ps(four, d1, d3);
  const Vector far = d4 - d2, near = two * (d3 - d1);
  d[0] = _mm512_fmadd_ps(four, d0, _mm512_fnmadd_ps(five, d2, d4));
  d[stride] = even + odd;
  d[2 * stride] = even - odd;
  d[3 * stride] = far + near;
  d[4 * stride] = far - near;
  d[5 * stride] = _mm512_fmadd_ps(four, d1, _mm512_fnmadd_ps(five, d3, d5));
}
template <>
inline void transform_line<8>(Vector* d, int stride) {
  const Vector d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride];
  const Vector d4 = d[4 * stride], d5 = d[5 * stride], d6 = d[6 * stride], d7 = d[7 * stride];
  const Vector edge = splat(5.25f), one = splat(-4.25f);
  d[0] = _mm512_fmadd_ps(edge, d4 - d2, d0 - d6);
  d[7 * stride] = _mm512_fmadd_ps(edge, d3 - d5, d7 - d1);
  const Vector even1 = _mm512_fmadd_ps(one, d4, d2 + d6), odd1 = _mm512_fmadd_ps(one, d3, d1 + d5);
  d[stride] = even1 + odd1;
  d[2 * stride] = even1 - odd1;
  const Vector middle = splat(-2.5f) * d3;
  const Vector even2 = _mm512_fmadd_ps(splat(0.25f), d2, _mm512_fmadd_ps(splat(-1.25f), d4, d6));
  const Vector odd2 = _mm512_fmadd_ps(splat(0.5f), d1, _mm512_fmadd_ps(splat(2), d5, middle));
  d[3 * stride] = even2 + odd2;
  d[4 * stride] = even2 - odd2;
  const Vector even3 = _mm512_fmadd_ps(splat(4), d2, _mm512_fmadd_ps(splat(-5), d4, d6));
  const Vector odd3 = _mm512_fmadd_ps(splat(2), d1, _mm512_fmadd_ps(splat(0.5f), d5, middle));
  d[5 * stride] = even3 + odd3;
  d[6 * stride] = even3 - odd3;
}

// 16 channels of a pixel, or zeros where the mask is 0.
inline Vector load_channels(__mmask16 mask, const float* at) { return _mm512_maskz_loadu_ps(mask, at); }
inline Vector load_channels(__mmask16 mask, const BFloat16* at) {
  const __m256i upper_halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(mask, _mm512_maskz_cvtepu16_epi32(mask, upper_halves), 16));
}

// A square of one channel block, zeros outside of the image. At an edge masked loads instead of branches: with 14 x 14
// pixels most tiles touch one.
template <int Side, typename Element>
inline void load_pixels(const Element* block, int64_t height, int64_t width, int64_t top, int64_t left,
                        Vector* d) {
  const auto clamp = [](int64_t value, int64_t limit) {
    return value < 0 ? 0 : value >= limit ? limit - 1 : value;
  };
  if (top >= 0 && left >= 0 && top + Side <= height && left + Side <= width) {
    const Element* corner = block + (top * width + left) * kLanes;
    for (int i = 0; i < Side; ++i)
      for (int j = 0; j < Side; ++j)
        d[i * Side + j] = load_channels(0xffff, corner + (i * width + j) * kLanes);
    return;
  }
  int64_t offset[Side];
  __mmask16 mask[Side];
  for (int j = 0; j < Side; ++j) {
    offset[j] = clamp(left + j, width) * kLanes;
    mask[j] = left + j >= 0 && left + j < width ? 0xffff : 0;
  }
  for (int i = 0; i < Side; ++i) {
    const bool there = top + i >= 0 && top + i < height;
    const Element* row = block + clamp(top + i, height) * width * kLanes;
    for (int j = 0; j < Side; ++j) d[i * Side + j] = load_channels(there ? mask[j] : 0, row + offset[j]);
  }
}

// Begins to fetch the pixels that the tile to the right of one needs besides: neighbours lie in as many places as a tile has
// rows, too many for the processor to follow by itself. Where there is no such tile, what lies there is of no use and no harm.
template <int Rows, typename Element>
inline void fetch_pixels(const Element* block, int64_t width, int64_t top, int64_t left, int64_t columns) {
  for (int i = 0; i < Rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      _mm_prefetch(block + ((top + i) * width + left + j) * kLanes, _MM_HINT_T0);
}

// store(point, value) of G d G^T, for a square of N x N values.
template <int Tile, int N, typename Store>
inline void expand(const Vector* d, const Store& store) {
  Vector rows[Tile * N];
#pragma GCC unroll 8
  for (int i = 0; i < Tile; ++i)
    for (int j = 0; j < N; ++j) rows[i * N + j] = combine(kMatrices<Tile, N>.g[i], d + j, N);
#pragma GCC unroll 8
  for (int i = 0; i < Tile; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Tile; ++j) store(i * Tile + j, combine(kMatrices<Tile, N>.g[j], rows + i * N, 1));
}

// The N x N results of Tile x Tile products that lie `stride` floats apart.
template <int Tile, int N>
inline void contract(const float* products, int64_t stride, Vector (&result)[N * N]) {
  Vector rows[N * Tile];
  for (int j = 0; j < Tile; ++j) {
    Vector column[Tile];
    for (int i = 0; i < Tile; ++i) column[i] = _mm512_loadu_ps(products + (i * Tile + j) * stride);
    combine_products<Tile, N>(column, 1, rows + j, Tile);
  }
  for (int i = 0; i < N; ++i) combine_products<Tile, N>(rows + i * Tile, 1, result + i * N, 1);
}

}  // namespace mox::winograd
