// The kernel of split_matmul.h (ops/processor/lanes.h).
#pragma once

#include <algorithm>

#include "ops/matmul/internal/split_matmul.h"
#include "ops/processor/lanes.h"

namespace mox::split_matmul_detail {
inline namespace MOX_LANES {
namespace {

using namespace lanes;

// The columns of a tile: with four rows, 16 sums in 32 registers or eight in 16.
constexpr int kWidest = kRegisters >= 32 ? 4 : 2;
constexpr int64_t kColumns = kWidest * kLanes;
constexpr int64_t kDepth = 64 * 64 / kColumns;  // terms of a tile: it takes half of a first-level cache
constexpr int64_t kLine = 16;                   // floats of a cache line

// Loops over sums are unrolled by pragma where they fill and store them: left to the end, GCC keeps the sums
// on the stack. y[Rows][kLanes * Vectors] (+)= sum over `depth` terms of a(row, term) * b[term][...].
template <int Rows, int Vectors>
inline void multiply_tile(const float* a, int64_t a_row, const float* b, int64_t b_row, float* y,
                          int64_t depth, bool accumulate) {
  Vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sum[r][v] = accumulate ? load(y + r * b_row + v * kLanes) : zero();
  for (int64_t i = 0; i < depth; ++i, ++a, b += b_row) {
    Vector line[Vectors];
    for (int v = 0; v < Vectors; ++v) line[v] = load(b + v * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const Vector scalar = splat(a[r * a_row]);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(scalar, line[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(y + r * b_row + v * kLanes, sum[r][v]);
}

// The tile of b that comes next: while one is multiplied, the next is fetched, a few rows at a time.
struct NextTile {
  const float* values;
  int64_t row_stride, rows;

  void fetch(int64_t first, int64_t count) const {
    for (int64_t row = first; row < std::min(rows, first + count); ++row)
      for (int64_t c = 0; c < kColumns; c += kLine) __builtin_prefetch(values + row * row_stride + c);
  }
};

template <int Vectors>
void multiply_columns(const SplitMatmul& p, int64_t term, int64_t depth, int64_t column, bool accumulate,
                      const NextTile& next, float* y) {
  const float* a = p.a + term;
  const float* b = p.b + term * p.n + column;
  const int64_t passes = (p.m + 3) / 4, rows_a_pass = (kDepth + passes - 1) / passes;
  int64_t row = 0, fetched = 0;
  for (; row + 4 <= p.m; row += 4, fetched += rows_a_pass) {
    next.fetch(fetched, rows_a_pass);
    multiply_tile<4, Vectors>(a + row * p.k, p.k, b, p.n, y + row * p.n + column, depth, accumulate);
  }
  for (; row < p.m; ++row)
    multiply_tile<1, Vectors>(a + row * p.k, p.k, b, p.n, y + row * p.n + column, depth, accumulate);
}

void sum_terms(const SplitMatmul& p, Range terms, Range columns, float* y) {
  for (int64_t term = terms.first; term < terms.last; term += kDepth) {
    const int64_t depth = std::min(kDepth, terms.last - term);
    const bool goes_on = term > terms.first;
    int64_t column = columns.first;
    for (; column + kColumns <= columns.last; column += kColumns) {
      const bool in_these_rows = column + 2 * kColumns <= columns.last;
      const NextTile next = in_these_rows ? NextTile{p.b + term * p.n + column + kColumns, p.n, depth}
                                          : NextTile{p.b + (term + depth) * p.n + columns.first, p.n,
                                                     std::min(kDepth, terms.last - term - depth)};
      multiply_columns<kWidest>(p, term, depth, column, goes_on, next, y);
    }
    for (; column < columns.last; column += kLanes)
      multiply_columns<1>(p, term, depth, column, goes_on, NextTile{nullptr, 0, 0}, y);
  }
}

}  // namespace
}  // namespace MOX_LANES
}  // namespace mox::split_matmul_detail
