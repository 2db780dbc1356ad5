// A matrix of few rows times a large one: a dense layer at the batch sizes of training.
//
// The product is as good as reading the large matrix once. Its rows, the terms of the sums, are cut into
// kParts parts of which each thread takes neighbours, so that a core reads the same rows of the weights here,
// in the gradient of the input and in the update: with the columns cut instead, every line of the weights
// goes from core to core twice a step. Only what a team of more than kParts threads has beyond them cuts the
// columns, too. The parts are summed in order, whatever the team, so results do not depend on it; nor does
// the choice of this kernel.
#pragma once

#include "runtime/base/team.h"

namespace mox {

// y[m, n] = a[m, k] * b[k, n] (+ bias[n], unless null), row-major.
struct SplitMatmul {
  int64_t m = 0, k = 0, n = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;
};

// Whether it can run (n in whole vectors) and is faster than a general product: b of 4 MiB or more.
bool split_matmul_pays(int64_t m, int64_t k, int64_t n);

// `scratch`: split_matmul_scratch(m, n) bytes.
size_t split_matmul_scratch(int64_t m, int64_t n);
void split_matmul(const SplitMatmul& product, float* scratch, const Team& team);

namespace split_matmul_detail {

inline constexpr int64_t kParts = 8;

struct Range {
  int64_t first, last;
};
// y = the sum over `terms` in `columns`, which are whole vectors, without the bias.
void sum_terms_avx2(const SplitMatmul& product, Range terms, Range columns, float* y);
void sum_terms_avx512(const SplitMatmul& product, Range terms, Range columns, float* y);

}  // namespace split_matmul_detail
}  // namespace mox
