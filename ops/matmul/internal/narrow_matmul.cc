#include "ops/matmul/internal/narrow_matmul.h"

#include <immintrin.h>

#include <algorithm>

#include "ops/matmul/internal/narrow_matmul_kernels.h"
#include "ops/processor/processor.h"

namespace mox {
namespace {

bool is_wide() { return processor().lanes >= 16; }

const NarrowMatmulKernels& kernels() {
  static const NarrowMatmulKernels& chosen = is_wide() ? kNarrowMatmulAvx512 : kNarrowMatmulAvx2;
  return chosen;
}

// Less work than this (about 10 us) is not worth a second thread: a fork and its barrier cost one or two
// microseconds while the other core waits for them, and a whole time slice when it is busy with preparing the
// next batch.
constexpr int64_t kProductsPerThread = 1000000;

// The rows of b^T are an odd number of cache lines apart, so that they do not compete for the
// same cache sets.
int64_t transposed_stride(int64_t k) { return (k + 15) / 16 / 2 * 32 + 16; }

// The columns of b[k, n] as rows that are `stride` apart.
void transpose(const float* b, float* columns, int64_t k, int64_t n, int64_t stride) {
  const int64_t whole_rows = k / 4 * 4, whole_columns = n / 4 * 4;
  for (int64_t p = 0; p < whole_rows; p += 4)
    for (int64_t c = 0; c < whole_columns; c += 4) {
      __m128 rows[4];
      for (int i = 0; i < 4; ++i) rows[i] = _mm_loadu_ps(b + (p + i) * n + c);
      _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
      for (int i = 0; i < 4; ++i) _mm_storeu_ps(columns + (c + i) * stride + p, rows[i]);
    }
  for (int64_t c = 0; c < n; ++c)
    for (int64_t p = c < whole_columns ? whole_rows : 0; p < k; ++p) columns[c * stride + p] = b[p * n + c];
}

void multiply_rows(const float* a, const float* b_transposed, float* y, int64_t m, int64_t k, int64_t stride,
                   int64_t n, const Team& team) {
  constexpr int64_t kRows = 4;  // as many as a tile has
  team.parallel_for((m + kRows - 1) / kRows, 1 + kProductsPerThread / (kRows * k * n),
                    [&](int64_t begin, int64_t end) {
                      const int64_t first = kRows * begin, rows = std::min(m, kRows * end) - first;
                      kernels().multiply(a + first * k, b_transposed, y + first * n, rows, k, stride, n);
                    });
}

}  // namespace

bool is_narrow_matmul(int64_t k, int64_t n) { return n <= 10 && k <= 4096; }

const char* narrow_matmul_implementation() { return is_wide() ? "narrow:avx512" : "narrow:avx2"; }

int64_t narrow_matmul_scratch(int64_t k, int64_t n) { return transposed_stride(k) * n; }

void narrow_matmul(const float* a, const float* b, float* y, int64_t m, int64_t k, int64_t n, float* scratch,
                   const Team& team) {
  const int64_t stride = transposed_stride(k);
  transpose(b, scratch, k, n, stride);
  multiply_rows(a, scratch, y, m, k, stride, n, team);
}

void narrow_matmul_by_rows(const float* a, const float* b_transposed, float* y, int64_t m, int64_t k,
                           int64_t n, const Team& team) {
  multiply_rows(a, b_transposed, y, m, k, k, n, team);
}

void narrow_matmul_transposed(const float* a, const float* b, float* y, int64_t m, int64_t k, int64_t n,
                              const Team& team) {
  // the tiles' borders, and so the order of each sum, do not depend on the team
  constexpr int64_t kRows = 32;
  team.parallel_for(
      (m + kRows - 1) / kRows, 1 + kProductsPerThread / (kRows * k * n), [&](int64_t begin, int64_t end) {
        kernels().multiply_transposed(a, b, y, begin * kRows, std::min(m, end * kRows), m, k, n);
      });
}

}  // namespace mox
