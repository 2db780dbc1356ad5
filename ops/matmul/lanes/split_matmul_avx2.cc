// Compiled for AVX2 and FMA: what every processor has that runs this library.
#include "ops/matmul/lanes/split_matmul.h"

namespace mox::split_matmul_detail {

void sum_terms_avx2(const SplitMatmul& product, Range terms, Range columns, float* y) {
  sum_terms(product, terms, columns, y);
}

}  // namespace mox::split_matmul_detail
