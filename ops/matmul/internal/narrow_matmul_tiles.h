// The loops of narrow_matmul, for one kind of vector register. Included by the two files that compile them,
// each with its own instruction set, so nothing here may be shared between them: everything is in an
// anonymous namespace, and nothing of the standard library is used that would be emitted as a
// function of its own.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/matmul/internal/narrow_matmul_kernels.h"

namespace mox {
namespace {

// Loops over sums are unrolled by pragma where they fill and store them: left to the end, GCC keeps the sums
// on the stack.
//
// `Simd` gives: Vector, kLanes, how much is computed at once (kDotRows, kDotColumns, kOuterColumns), zero,
// load, store, broadcast, multiply_add, sum.
template <typename Simd>
struct NarrowTiles {
  using Vector = typename Simd::Vector;

  // y[row, column] for kRows rows of a and kColumns rows of b^T, both of `k` elements; b^T has rows of
  // `stride`.
  template <int kRows, int kColumns>
  static void dot_tile(const float* a, const float* b_transposed, float* y, int64_t k, int64_t stride,
                       int64_t n) {
    Vector sums[kRows][kColumns];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) sums[r][c] = Simd::zero();
    int64_t p = 0;
    for (; p + Simd::kLanes <= k; p += Simd::kLanes) {
      Vector left[kRows];
      for (int r = 0; r < kRows; ++r) left[r] = Simd::load(a + r * k + p);
      for (int c = 0; c < kColumns; ++c) {
        const Vector right = Simd::load(b_transposed + c * stride + p);
        for (int r = 0; r < kRows; ++r) sums[r][c] = Simd::multiply_add(left[r], right, sums[r][c]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) {
        float total = Simd::sum(sums[r][c]);
        for (int64_t q = p; q < k; ++q) total += a[r * k + q] * b_transposed[c * stride + q];
        y[r * n + c] = total;
      }
  }

  template <int kColumns>
  static void dot_rows(const float* a, const float* b_transposed, float* y, int64_t rows, int64_t k,
                       int64_t stride, int64_t n) {
    int64_t row = 0;
    for (; row + Simd::kDotRows <= rows; row += Simd::kDotRows)
      dot_tile<Simd::kDotRows, kColumns>(a + row * k, b_transposed, y + row * n, k, stride, n);
    for (; row < rows; ++row) dot_tile<1, kColumns>(a + row * k, b_transposed, y + row * n, k, stride, n);
  }

  // kVectors * kLanes rows of y (columns of a, whose rows are `m` long) times kColumns columns.
  template <int kVectors, int kColumns>
  static void outer_tile(const float* a, const float* b, float* y, int64_t m, int64_t k, int64_t n) {
    Vector sums[kVectors][kColumns];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) sums[v][c] = Simd::zero();
    for (int64_t p = 0; p < k; ++p) {
      Vector left[kVectors];
      for (int v = 0; v < kVectors; ++v) left[v] = Simd::load(a + p * m + v * Simd::kLanes);
      for (int c = 0; c < kColumns; ++c) {
        const Vector right = Simd::broadcast(b[p * n + c]);
        for (int v = 0; v < kVectors; ++v) sums[v][c] = Simd::multiply_add(left[v], right, sums[v][c]);
      }
    }
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      alignas(64) float columns[kColumns][Simd::kLanes];
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) Simd::store(columns[c], sums[v][c]);
      for (int lane = 0; lane < Simd::kLanes; ++lane)
        for (int c = 0; c < kColumns; ++c) y[(v * Simd::kLanes + lane) * n + c] = columns[c][lane];
    }
  }

  // The rows [begin, end) of y.
  template <int kColumns>
  static void outer_rows(const float* a, const float* b, float* y, int64_t begin, int64_t end, int64_t m,
                         int64_t k, int64_t n) {
    constexpr int64_t kLanes = Simd::kLanes;
    int64_t row = begin;
    for (; row + 2 * kLanes <= end; row += 2 * kLanes)
      outer_tile<2, kColumns>(a + row, b, y + row * n, m, k, n);
    for (; row + kLanes <= end; row += kLanes) outer_tile<1, kColumns>(a + row, b, y + row * n, m, k, n);
    for (; row < end; ++row) {
      float sums[kColumns] = {};
      for (int64_t p = 0; p < k; ++p)
        for (int c = 0; c < kColumns; ++c) sums[c] += a[p * m + row] * b[p * n + c];
      for (int c = 0; c < kColumns; ++c) y[row * n + c] = sums[c];
    }
  }

  // body(first column, columns as a constant) for groups of columns.
  template <int kColumns, typename Body>
  static void dispatch(int64_t columns, int64_t first, const Body& body) {
    if constexpr (kColumns > 1) {
      if (columns < kColumns) return dispatch<kColumns - 1>(columns, first, body);
    }
    body.template operator()<kColumns>(first);
  }
  template <int kGroup, typename Body>
  static void for_each_group(int64_t n, const Body& body) {
    for (int64_t first = 0; first < n; first += kGroup)
      dispatch<kGroup>(n - first < kGroup ? n - first : kGroup, first, body);
  }

  static void multiply(const float* a, const float* b_transposed, float* y, int64_t rows, int64_t k,
                       int64_t stride, int64_t n) {
    for_each_group<Simd::kDotColumns>(n, [&]<int kColumns>(int64_t c) {
      dot_rows<kColumns>(a, b_transposed + c * stride, y + c, rows, k, stride, n);
    });
  }
  static void multiply_transposed(const float* a, const float* b, float* y, int64_t begin, int64_t end,
                                  int64_t m, int64_t k, int64_t n) {
    for_each_group<Simd::kOuterColumns>(
        n, [&]<int kColumns>(int64_t c) { outer_rows<kColumns>(a, b + c, y + c, begin, end, m, k, n); });
  }
};

}  // namespace
}  // namespace mox
