#include "moxing/tabular/internal/column_moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mox::internal {
namespace {

constexpr size_t kInTwenty = 20;  // one value of so many, at either end, may be far
constexpr double kSmall = 1e-100;
constexpr double kLeastRange = 0.001;  // of most values, in deviations

}  // namespace

TableMoments moments_of(const std::vector<double>& values) {
  const double count = values.size();
  TableMoments moments{.mean = std::accumulate(values.begin(), values.end(), 0.0) / count, .deviation = 1};
  double farthest = 0, squares = 0;
  for (const double value : values) farthest = std::max(farthest, std::fabs(value - moments.mean));
  // The squares of small differences would be 0. A power of two, which changes no digit of the result.
  const double scale = farthest < kSmall ? std::exp2(std::ilogb(farthest > 0 ? farthest : 1.0)) : 1;
  for (const double value : values) {
    const double difference = (value - moments.mean) / scale;
    squares += difference * difference;
  }
  const double deviation = std::sqrt(squares / count) * scale;
  // Equal values may differ from their mean by a rounding.
  const bool varies = std::ranges::any_of(values, [&](double v) { return v != values.front(); });
  if (varies && deviation > 0) moments.deviation = deviation;
  if (!varies) moments.mean = values.front();
  return moments;
}

bool are_equal(const std::vector<double>& values) {
  return std::ranges::all_of(values, [&](double value) { return value == values.front(); });
}

std::optional<std::string> far_numbers(const std::vector<double>& values, const TableMoments& moments) {
  // At least one value at either end: in a short table a single one may be the far one.
  const size_t aside = std::max<size_t>(1, values.size() / kInTwenty);
  if (values.size() < 2 * aside + 2) return std::nullopt;
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const double low = sorted[aside], high = sorted[sorted.size() - 1 - aside];
  if (!(high > low) || (high - low) >= kLeastRange * moments.deviation) return std::nullopt;
  const double farthest = high - sorted.front() > sorted.back() - low ? sorted.front() : sorted.back();
  return fmt::format(
      "most of its numbers lie between {:g} and {:g}, but some are as far as {:g}; these alone make the "
      "deviation ({:g}) by which all are divided, so that the others are nearly equal to the model",
      low, high, farthest, moments.deviation);
}

}  // namespace mox::internal
