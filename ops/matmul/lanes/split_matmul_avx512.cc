// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/matmul/lanes/split_matmul.h"

namespace mox::split_matmul_detail {

void sum_terms_avx512(const SplitMatmul& product, Range terms, Range columns, float* y) {
  sum_terms(product, terms, columns, y);
}

}  // namespace mox::split_matmul_detail
