// The transforms of Winograd's minimal filtering on vectors of channels (ops/processor/lanes.h).
//
// B^T's row of a finite point a_i holds the coefficients of the product of (x - a_j) over the other finite
// points, that of infinity those of the product over all of them; A's column is 1, a_i, a_i^2, ...; G's row
// is the same divided by the product of (a_i - a_j). For 4 and 8 points B^T's row of the point 0 is negated,
// and with it G's.
#pragma once

#include <cstdint>

#include "ops/convolution/winograd/internal/tiles.h"
#include "ops/processor/lanes.h"

namespace mox::winograd {
inline namespace MOX_LANES {

using namespace lanes;

constexpr float power(float base, int exponent) {
  float result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

// The finite points and what G's rows are scaled by.
template <int Tile>
struct Points;
template <>
struct Points<4> {
  static constexpr float at[3] = {0, 1, -1};
  static constexpr float scale[3] = {1, 1.0f / 2, 1.0f / 2};
};
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

// The results of A for points in pairs a, -a: their sum serves the even powers, their
// difference the odd ones.
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
      total = multiply_add(splat(power(Points<Tile>::at[1 + 2 * i], n)), n % 2 == 0 ? sum[i] : difference[i],
                           total);
    if (n == 0) total = total + m[0];
    if (n == N - 1) total = total + m[(Tile - 1) * stride];
    result[n * result_stride] = total;
  }
}

// B^T applied to values that lie `stride` apart, in place.
template <int Tile>
void transform_line(Vector* d, int stride);
template <>
inline void transform_line<4>(Vector* d, int stride) {
  const Vector d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride];
  d[0] = d0 - d2;
  d[stride] = d1 + d2;
  d[2 * stride] = d2 - d1;
  d[3 * stride] = d3 - d1;
}
template <>
inline void transform_line<6>(Vector* d, int stride) {
  const Vector four = splat(4), five = splat(5), two = splat(2);
  const Vector d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride], d4 = d[4 * stride],
               d5 = d[5 * stride];
  const Vector even = subtract_product(four, d2, d4), odd = subtract_product(four, d1, d3);
  const Vector far = d4 - d2, near = two * (d3 - d1);
  d[0] = multiply_add(four, d0, subtract_product(five, d2, d4));
  d[stride] = even + odd;
  d[2 * stride] = even - odd;
  d[3 * stride] = far + near;
  d[4 * stride] = far - near;
  d[5 * stride] = multiply_add(four, d1, subtract_product(five, d3, d5));
}
// Its first three results of the first five values, and its last three of the last five.
inline void transform_first_half(const Vector* d, Vector* result) {
  const Vector four = splat(4);
  const Vector even = subtract_product(four, d[2], d[4]), odd = subtract_product(four, d[1], d[3]);
  result[0] = multiply_add(four, d[0], subtract_product(splat(5), d[2], d[4]));
  result[1] = even + odd;
  result[2] = even - odd;
}
inline void transform_second_half(const Vector* d, Vector* result) {
  const Vector far = d[3] - d[1], near = splat(2) * (d[2] - d[0]);
  result[0] = far + near;
  result[1] = far - near;
  result[2] = multiply_add(splat(4), d[0], subtract_product(splat(5), d[2], d[4]));
}
template <>
inline void transform_line<8>(Vector* d, int stride) {
  const Vector d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride];
  const Vector d4 = d[4 * stride], d5 = d[5 * stride], d6 = d[6 * stride], d7 = d[7 * stride];
  const Vector edge = splat(5.25f), one = splat(-4.25f);
  d[0] = multiply_add(edge, d4 - d2, d0 - d6);
  d[7 * stride] = multiply_add(edge, d3 - d5, d7 - d1);
  const Vector even1 = multiply_add(one, d4, d2 + d6), odd1 = multiply_add(one, d3, d1 + d5);
  d[stride] = even1 + odd1;
  d[2 * stride] = even1 - odd1;
  const Vector middle = splat(-2.5f) * d3;
  const Vector even2 = multiply_add(splat(0.25f), d2, multiply_add(splat(-1.25f), d4, d6));
  const Vector odd2 = multiply_add(splat(0.5f), d1, multiply_add(splat(2), d5, middle));
  d[3 * stride] = even2 + odd2;
  d[4 * stride] = even2 - odd2;
  const Vector even3 = multiply_add(splat(4), d2, multiply_add(splat(-5), d4, d6));
  const Vector odd3 = multiply_add(splat(2), d1, multiply_add(splat(0.5f), d5, middle));
  d[5 * stride] = even3 + odd3;
  d[6 * stride] = even3 - odd3;
}

// take(j, line) for each column of a square of one channel block; line: its Side pixels, zeros outside of the
// image. At an edge masked loads instead of branches: with 14 x 14 pixels most tiles touch one.
template <int Side, typename Element, typename Take>
inline void for_each_column(const Element* block, int64_t height, int64_t width, int64_t top, int64_t left,
                            const Take& take) {
  if (top >= 0 && left >= 0 && top + Side <= height && left + Side <= width) {
    const Element* corner = block + (top * width + left) * kLanes;
    for (int j = 0; j < Side; ++j) {
      Vector line[Side];
#pragma GCC unroll 8
      for (int i = 0; i < Side; ++i) line[i] = load(corner + (i * width + j) * kLanes);
      take(j, line);
    }
    return;
  }
  const auto clamp = [](int64_t value, int64_t limit) {
    return value < 0 ? 0 : value >= limit ? limit - 1 : value;
  };
  const Element* row[Side];
  Mask mask[Side];
  for (int i = 0; i < Side; ++i) {
    row[i] = block + clamp(top + i, height) * width * kLanes;
    mask[i] = top + i >= 0 && top + i < height ? kEverywhere : kNowhere;
  }
  for (int j = 0; j < Side; ++j) {
    const int64_t offset = clamp(left + j, width) * kLanes;
    const Mask there = left + j >= 0 && left + j < width ? kEverywhere : kNowhere;
    Vector line[Side];
#pragma GCC unroll 8
    for (int i = 0; i < Side; ++i) line[i] = load_where(both(mask[i], there), row[i] + offset);
    take(j, line);
  }
}

// Begins to fetch the pixels that the tile to the right of one needs besides: neighbours lie in as many
// places as a tile has rows, too many for the processor to follow by itself. Where there is no such tile,
// what lies there is of no use and no harm.
template <int Rows, int Columns, typename Element>
inline void fetch_pixels(const Element* block, int64_t width, int64_t top, int64_t left) {
  const Element* row = block + (top * width + left) * kLanes;
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i, row += width * kLanes)
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) _mm_prefetch(row + j * kLanes, _MM_HINT_T0);
}

// G applied to N values: Tile values. Points in pairs a, -a share the even and the odd powers.
template <int Tile, int N>
inline void expand_line(const Vector* d, int stride, Vector* result, int result_stride) {
  using P = Points<Tile>;
  result[0] = splat(P::scale[0]) * d[0];
#pragma GCC unroll 8
  for (int i = 1; i < Tile - 1; i += 2) {
    Vector even = splat(P::scale[i]) * d[0], odd = splat(P::scale[i] * P::at[i]) * d[stride];
#pragma GCC unroll 8
    for (int n = 2; n < N; ++n) {
      Vector& sum = n % 2 == 0 ? even : odd;
      sum = multiply_add(splat(P::scale[i] * power(P::at[i], n)), d[n * stride], sum);
    }
    result[i * result_stride] = even + odd;
    result[(i + 1) * result_stride] = even - odd;
  }
  result[(Tile - 1) * result_stride] = d[(N - 1) * stride];
}

// store(value) of each point of G d G^T, in their order, from its columns: Tile x N values.
template <int Tile, int N, typename Store>
inline void expand_rows(const Vector* columns, const Store& store) {
  for (int i = 0; i < Tile; ++i) {
    Vector line[Tile];
    expand_line<Tile, N>(columns + i * N, 1, line, 1);
#pragma GCC unroll 8
    for (int j = 0; j < Tile; ++j) store(line[j]);
  }
}

// store(value) of each point of G d G^T, in their order, for a square of N x N values.
template <int Tile, int N, typename Store>
inline void expand(const Vector* d, const Store& store) {
  Vector columns[Tile * N];
  for (int j = 0; j < N; ++j) expand_line<Tile, N>(d + j, N, columns + j, N);
  expand_rows<Tile, N>(columns, store);
}

// The N x N results of Tile x Tile products that lie `stride` floats apart.
template <int Tile, int N>
inline void contract(const float* products, int64_t stride, Vector* result) {
  Vector rows[N * Tile];
#pragma GCC unroll 8
  for (int j = 0; j < Tile; ++j) {
    Vector column[Tile];
#pragma GCC unroll 8
    for (int i = 0; i < Tile; ++i) column[i] = load(products + (i * Tile + j) * stride);
    combine_products<Tile, N>(column, 1, rows + j, Tile);
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) combine_products<Tile, N>(rows + i * Tile, 1, result + i * N, 1);
}

}  // namespace MOX_LANES
}  // namespace mox::winograd
