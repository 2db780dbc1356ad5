#include "moxing/optimizers/gradient_clipping.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/base/error.h"

namespace mox {
namespace {

constexpr int64_t kMaxChunks = 1024;  // partial sums live on the stack
constexpr int64_t kSmallestChunk = 8192;

// The sum over a balanced binary tree whose shape depends on the number of values alone.
double tree_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  if (values.size() == 1) return values[0];
  const size_t half = values.size() / 2;
  return tree_sum(values.first(half)) + tree_sum(values.subspan(half));
}

double chunk_sum_of_squares(const float* __restrict values, int64_t count) {
  constexpr int64_t kLanes = 16;  // independent sums, so that the loop becomes vector code without reordering
  std::array<double, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  for (int64_t lane = 0; i < count; ++i, ++lane) {
    const double value = values[i];
    lanes[lane] += value * value;
  }
  return tree_sum(lanes);
}

}  // namespace

double sum_of_squares(std::span<const float> gradient, const Team& team) {
  const int64_t count = gradient.size();
  const int64_t chunk = std::max(kSmallestChunk, (count + kMaxChunks - 1) / kMaxChunks);
  std::array<double, kMaxChunks> sums;
  team.parallel_chunks(count, chunk, [&](int64_t index, int64_t begin, int64_t end) {
    sums[index] = chunk_sum_of_squares(gradient.data() + begin, end - begin);
  });
  return tree_sum(std::span<const double>(sums).first((count + chunk - 1) / chunk));
}

double global_norm(std::span<const double> sums_of_squares) { return std::sqrt(tree_sum(sums_of_squares)); }

double clipping_scale(double norm, double limit) {
  MOX_ASSERT(limit > 0, "a limit of the global norm is positive");
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  return norm <= limit ? 1.0 : limit / norm;
}

}  // namespace mox
