// Compiled for AVX2 and FMA: what every processor has that runs this library.
#include "ops/matmul/lanes/outer_product.h"

namespace mox::outer_product {

void compute_panel_avx2(const OuterProduct& product, int64_t first, int64_t rows, float* panel,
                        int64_t next_rows, const PartListener& parts) {
  compute_panel(product, first, rows, panel, next_rows, parts);
}

}  // namespace mox::outer_product
