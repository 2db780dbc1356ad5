// Products of matrices of which the right factor has few columns: the last layer of a classifier and its
// weight gradient. A general product packs its factors for tiles that such a matrix does not fill; these two
// loops reach about twice its speed at [100, 784] x [784, 10].
#pragma once

#include <cstdint>

#include "runtime/base/team.h"

namespace mox {

// Whether y[m, n], a sum of k products an element, is better off here: measured against oneDNN.
bool is_narrow_matmul(int64_t k, int64_t n);
const char* narrow_matmul_implementation();  // "narrow:avx512" or "narrow:avx2", by what the processor has

// y[m, n] = a[m, k] * b[k, n], row-major. `scratch`: narrow_matmul_scratch(k, n) floats.
int64_t narrow_matmul_scratch(int64_t k, int64_t n);
void narrow_matmul(const float* a, const float* b, float* y, int64_t m, int64_t k, int64_t n, float* scratch,
                   const Team& team);
// The same for b given as b^T[n, k], which needs no scratch.
void narrow_matmul_by_rows(const float* a, const float* b_transposed, float* y, int64_t m, int64_t k,
                           int64_t n, const Team& team);

// y[m, n] = a^T * b for a[k, m], b[k, n], row-major.
void narrow_matmul_transposed(const float* a, const float* b, float* y, int64_t m, int64_t k, int64_t n,
                              const Team& team);

}  // namespace mox
