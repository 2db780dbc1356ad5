#include "ops/internal/outer_product.h"

#include <algorithm>

#include "ops/instruction_set.h"

namespace mox {

using outer_product::kPanelRows;

bool outer_product_pays(int64_t m, int64_t k, int64_t n) {
  const bool has_avx512 = instruction_set() >= InstructionSet::kAvx512;
  return has_avx512 && n % 16 == 0 && k >= 1 && k <= 512 && m >= 1 && n >= 1 && m * n >= 256 * 1024;
}

size_t outer_product_scratch(int64_t n, const Team& team) {
  return static_cast<size_t>(team.size() * kPanelRows * n) * sizeof(float);
}

void outer_product_in_parts(const OuterProduct& p, float* scratch, const PartListener& parts,
                            const Team& team) {
  const int64_t panels = (p.m + kPanelRows - 1) / kPanelRows, shares = team.size();
  team.parallel_for(shares, 1, [&](int64_t first_share, int64_t last_share) {
    for (int64_t share = first_share; share < last_share; ++share) {
      float* panel = scratch + share * kPanelRows * p.n;
      const int64_t last = panels * (share + 1) / shares;
      for (int64_t i = panels * share / shares; i < last; ++i) {
        const int64_t first = i * kPanelRows, rows = std::min(kPanelRows, p.m - first);
        const int64_t next_rows = i + 1 < last ? std::min(kPanelRows, p.m - first - rows) : 0;
        outer_product::compute_panel_avx512(p, first, rows, panel, next_rows, parts);
        parts.take(first * p.n, {panel, static_cast<size_t>(rows * p.n)});
      }
    }
  });
}

}  // namespace mox
