// Compiled with AVX-512 switched on; called only where the processor has it.
#include <immintrin.h>

#include <algorithm>

#include "ops/matmul/internal/split_matmul.h"

namespace mox::split_matmul_detail {
namespace {

using Vector = __m512;
constexpr int64_t kLanes = 16;
constexpr int64_t kDepth = 64;  // terms of a tile: with 64 columns it takes half of a first-level cache

// Loops over sums are unrolled by pragma where they fill and store them: left to the end, GCC keeps the sums
// on the stack. y[Rows][16 * Vectors] (+)= sum over `depth` terms of a(row, term) * b[term][...].
template <int Rows, int Vectors>
inline void multiply_tile(const float* a, int64_t a_row, const float* b, int64_t b_row, float* y,
                          int64_t depth, bool accumulate) {
  Vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = accumulate ? _mm512_loadu_ps(y + r * b_row + v * kLanes) : _mm512_setzero_ps();
  for (int64_t i = 0; i < depth; ++i, ++a, b += b_row) {
    Vector line[Vectors];
    for (int v = 0; v < Vectors; ++v) line[v] = _mm512_loadu_ps(b + v * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const Vector scalar = _mm512_set1_ps(a[r * a_row]);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = _mm512_fmadd_ps(scalar, line[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) _mm512_storeu_ps(y + r * b_row + v * kLanes, sum[r][v]);
}

// The tile of b that comes next: while one is multiplied, the next is fetched, a few rows at a time.
struct NextTile {
  const float* values;
  int64_t row_stride, rows;

  void fetch(int64_t first, int64_t count) const {
    for (int64_t row = first; row < std::min(rows, first + count); ++row)
      for (int64_t c = 0; c < 4 * kLanes; c += kLanes) __builtin_prefetch(values + row * row_stride + c);
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

}  // namespace

void sum_terms_avx512(const SplitMatmul& p, int64_t first, int64_t last, float* y) {
  for (int64_t term = first; term < last; term += kDepth) {
    const int64_t depth = std::min(kDepth, last - term);
    int64_t column = 0;
    for (; column + 4 * kLanes <= p.n; column += 4 * kLanes) {
      const bool in_these_rows = column + 8 * kLanes <= p.n;
      const NextTile next =
          in_these_rows ? NextTile{p.b + term * p.n + column + 4 * kLanes, p.n, depth}
                        : NextTile{p.b + (term + depth) * p.n, p.n, std::min(kDepth, last - term - depth)};
      multiply_columns<4>(p, term, depth, column, term > first, next, y);
    }
    for (; column < p.n; column += kLanes)
      multiply_columns<1>(p, term, depth, column, term > first, NextTile{nullptr, 0, 0}, y);
  }
}

}  // namespace mox::split_matmul_detail
