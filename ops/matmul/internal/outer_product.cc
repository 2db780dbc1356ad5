#include "ops/matmul/internal/outer_product.h"

#include <algorithm>

#include "ops/processor/processor.h"

namespace mox {

using outer_product::kPanelRows;

bool outer_product_pays(int64_t m, int64_t k, int64_t n) {
  return n % processor().lanes == 0 && k >= 1 && k <= 512 && m >= 1 && n >= 1 && m * n >= 256 * 1024;
}

size_t outer_product_scratch(int64_t n, const Team& team) {
  return (team.size() * kPanelRows * n) * sizeof(float);
}

void outer_product_in_parts(const OuterProduct& p, float* scratch, const PartListener& parts,
                            const Team& team) {
  const auto compute_panel =
      processor().lanes >= 16 ? outer_product::compute_panel_avx512 : outer_product::compute_panel_avx2;
  const int64_t panels = (p.m + kPanelRows - 1) / kPanelRows;
  team.parallel_for_by_thread(panels, 1, [&](int thread, int64_t first_panel, int64_t last_panel) {
    float* panel = scratch + thread * kPanelRows * p.n;
    for (int64_t i = first_panel; i < last_panel; ++i) {
      const int64_t first = i * kPanelRows, rows = std::min(kPanelRows, p.m - first);
      const int64_t next_rows = std::min(kPanelRows, p.m - first - rows);  // most often this thread's as well
      compute_panel(p, first, rows, panel, next_rows, parts);
      parts.take(first * p.n, {panel, static_cast<size_t>(rows * p.n)});
    }
  });
}

}  // namespace mox
