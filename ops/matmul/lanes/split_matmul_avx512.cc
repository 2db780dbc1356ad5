// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/matmul/lanes/split_matmul.h"

namespace mox::split_matmul_detail {

void sum_terms_avx512(const SplitMatmul& product, int64_t first, int64_t last, float* y) {
  sum_terms(product, first, last, y);
}

}  // namespace mox::split_matmul_detail
