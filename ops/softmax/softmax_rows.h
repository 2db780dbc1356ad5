// The arithmetic that softmax and the cross entropies share, over contiguous rows [rows, length].
//
// What a loss keeps of a row for its gradient is its maximum and the logarithm of the
// sum of exp(x - maximum): softmax = exp((x - maximum) - log_sum). The two stay apart, as their sum would
// lose the digits of log_sum when logits are large.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/team.h"

namespace mox::internal {

// Rows are handled in groups that fit this many elements, so that short rows fill whole vectors too and a
// second look at a row finds it in the first-level cache.
inline constexpr int64_t kGroupElements = 4096;
inline constexpr int64_t kGroupRows = 512;
// Elements a thread should have at least: below, waking it costs more than it helps.
inline constexpr int64_t kSoftmaxElementsPerThread = 1 << 14;

inline int64_t rows_per_group(int64_t length) {
  return std::clamp<int64_t>(kGroupElements / std::max<int64_t>(length, 1), 1, kGroupRows);
}

// work(first, rows) for groups of all `rows` rows, on the team.
inline void for_row_groups(int64_t rows, int64_t length, const Team& team,
                           FunctionRef<void(int64_t, int64_t)> work) {
  const int64_t grain = std::max<int64_t>(1, kSoftmaxElementsPerThread / std::max<int64_t>(length, 1));
  const int64_t group = rows_per_group(length);
  team.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += group) work(first, std::min(group, end - first));
  });
}

// maxima[row] and log_sums[row] for `rows` <= rows_per_group(length) rows of length >= 1.
void row_statistics(const float* x, int64_t rows, int64_t length, float* maxima, float* log_sums);

// y = softmax(x); same limits.
void softmax_rows(const float* x, int64_t rows, int64_t length, float* y);

// The same from the rows' statistics. y may be x.
void softmax_from_statistics(const float* x, int64_t rows, int64_t length, const float* maxima,
                             const float* log_sums, float* y);

}  // namespace mox::internal
