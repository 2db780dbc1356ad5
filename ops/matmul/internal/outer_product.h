// The gradient of a dense layer's weights, a^T * b for a[k, m] and b[k, n] with few rows k (the batch),
// handed over in parts.
//
// The result is large and used once, by the optimizer: written to memory and read back it would cost more
// than its arithmetic. Panels of whole rows are computed into memory that stays in the second-level cache,
// and given away.
#pragma once

#include "runtime/base/team.h"
#include "runtime/graph/kernel.h"

namespace mox {

// Row-major. The sum of an element runs over k in order, so it does not depend on the team.
struct OuterProduct {
  int64_t m = 0, k = 0, n = 0;
  const float* a = nullptr;
  const float* b = nullptr;
};

// Whether it can run (n in whole vectors) and gains: a result of 1 MiB or more, a batch
// of 512 or less.
bool outer_product_pays(int64_t m, int64_t k, int64_t n);

// `scratch`: outer_product_scratch(n, team) bytes.
size_t outer_product_scratch(int64_t n, const Team& team);
void outer_product_in_parts(const OuterProduct& product, float* scratch, const PartListener& parts,
                            const Team& team);

namespace outer_product {

inline constexpr int64_t kPanelRows = 12;
// panel[rows][n] = rows [first, first + rows) of the product; rows <= kPanelRows. Meanwhile `parts` is told
// to expect `next_rows` that follow, a few elements at a time.
void compute_panel_avx2(const OuterProduct& product, int64_t first, int64_t rows, float* panel,
                        int64_t next_rows, const PartListener& parts);
void compute_panel_avx512(const OuterProduct& product, int64_t first, int64_t rows, float* panel,
                          int64_t next_rows, const PartListener& parts);

}  // namespace outer_product
}  // namespace mox
