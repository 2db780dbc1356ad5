// The inner loops of narrow_matmul, compiled for two instruction sets.
#pragma once

#include <cstdint>

namespace mox {

struct NarrowMatmulKernels {
  // y[rows, n] = a[rows, k] * b[k, n], with b given as b^T, whose rows are `stride` apart.
  void (*multiply)(const float* a, const float* b_transposed, float* y, int64_t rows, int64_t k,
                   int64_t stride, int64_t n);
  // The rows [begin, end) of y[m, n] = a^T * b for a[k, m], b[k, n].
  void (*multiply_transposed)(const float* a, const float* b, float* y, int64_t begin, int64_t end, int64_t m,
                              int64_t k, int64_t n);
};

extern const NarrowMatmulKernels kNarrowMatmulAvx2;
extern const NarrowMatmulKernels kNarrowMatmulAvx512;  // for processors with AVX-512F

}  // namespace mox
