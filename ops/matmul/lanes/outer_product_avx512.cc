// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/matmul/lanes/outer_product.h"

namespace mox::outer_product {

void compute_panel_avx512(const OuterProduct& product, int64_t first, int64_t rows, float* panel,
                          int64_t next_rows, const PartListener& parts) {
  compute_panel(product, first, rows, panel, next_rows, parts);
}

}  // namespace mox::outer_product
