// The kernel of outer_product.h (ops/processor/lanes.h).
#pragma once

#include "ops/matmul/internal/outer_product.h"
#include "ops/processor/lanes.h"

namespace mox::outer_product {
inline namespace MOX_LANES {
namespace {

using namespace lanes;

// The columns of a tile: with six rows, 24 sums in 32 registers or twelve in 16.
constexpr int kWidest = kRegisters >= 32 ? 4 : 2;
constexpr int64_t kColumns = kWidest * kLanes;

// Loops over sums are unrolled by pragma where they fill and store them: left to the end, GCC keeps the sums
// on the stack. panel[Rows][kLanes * Vectors] = sum over k of a[i][row] * b[i][...].
template <int Rows, int Vectors>
inline void compute_tile(const float* a, int64_t a_row, const float* b, int64_t b_row, int64_t k,
                         float* panel) {
  Vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sum[r][v] = zero();
  for (int64_t i = 0; i < k; ++i, a += a_row, b += b_row) {
    Vector line[Vectors];
    for (int v = 0; v < Vectors; ++v) line[v] = load(b + v * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const Vector scalar = splat(a[r]);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(scalar, line[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(panel + r * b_row + v * kLanes, sum[r][v]);
}

// All rows of a panel for one tile of columns, which stays in the first-level cache meanwhile.
template <int Vectors>
void compute_columns(const OuterProduct& p, int64_t first, int64_t rows, int64_t column, float* panel) {
  int64_t row = 0;
  for (; row + 6 <= rows; row += 6)
    compute_tile<6, Vectors>(p.a + first + row, p.m, p.b + column, p.n, p.k, panel + row * p.n + column);
  for (; row < rows; ++row)
    compute_tile<1, Vectors>(p.a + first + row, p.m, p.b + column, p.n, p.k, panel + row * p.n + column);
}

void compute_panel(const OuterProduct& p, int64_t first, int64_t rows, float* panel, int64_t next_rows,
                   const PartListener& parts) {
  const int64_t next = (first + rows) * p.n;
  int64_t column = 0;
  for (; column + kColumns <= p.n; column += kColumns) {
    if (next_rows > 0) parts.expect(next + column * next_rows, kColumns * next_rows);
    compute_columns<kWidest>(p, first, rows, column, panel);
  }
  if (column < p.n && next_rows > 0) parts.expect(next + column * next_rows, (p.n - column) * next_rows);
  for (; column < p.n; column += kLanes) compute_columns<1>(p, first, rows, column, panel);
}

}  // namespace
}  // namespace MOX_LANES
}  // namespace mox::outer_product
