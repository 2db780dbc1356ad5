// Compiled for AVX2 and FMA: what every processor has that runs this library.
#include "ops/matmul/lanes/split_matmul.h"

namespace mox::split_matmul_detail {

void sum_terms_avx2(const SplitMatmul& product, int64_t first, int64_t last, float* y) {
  sum_terms(product, first, last, y);
}

}  // namespace mox::split_matmul_detail
