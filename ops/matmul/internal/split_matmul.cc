#include "ops/matmul/internal/split_matmul.h"

#include <algorithm>

#include "ops/processor/processor.h"

namespace mox {

using split_matmul_detail::kParts;

bool split_matmul_pays(int64_t m, int64_t k, int64_t n) {
  return n % processor().lanes == 0 && m >= 1 && m <= 128 && k >= 64 * kParts && k * n >= 1024 * 1024;
}

size_t split_matmul_scratch(int64_t m, int64_t n) { return (kParts * m * n) * sizeof(float); }

void split_matmul(const SplitMatmul& p, float* scratch, const Team& team) {
  const auto sum_terms =
      processor().lanes >= 16 ? split_matmul_detail::sum_terms_avx512 : split_matmul_detail::sum_terms_avx2;
  const int64_t lanes = processor().lanes, vectors = p.n / lanes;
  const int64_t shares = std::min((team.size() + kParts - 1) / kParts, vectors);  // of the columns
  team.parallel_for(kParts * shares, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t part = i / shares, share = i % shares;
      sum_terms(p, {p.k * part / kParts, p.k * (part + 1) / kParts},
                {vectors * share / shares * lanes, vectors * (share + 1) / shares * lanes},
                scratch + part * p.m * p.n);
    }
  });
  team.parallel_for(p.m, 4, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      float* y = p.y + row * p.n;
      const float* parts[kParts];
      for (int64_t part = 0; part < kParts; ++part) parts[part] = scratch + (part * p.m + row) * p.n;
      for (int64_t c = 0; c < p.n; ++c) {
        float sum = p.bias ? p.bias[c] : 0.0f;
        for (int64_t part = 0; part < kParts; ++part) sum += parts[part][c];
        y[c] = sum;
      }
    }
  });
}

}  // namespace mox
