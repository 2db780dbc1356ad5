#include "ops/support/exponential.h"

#include <Eigen/Core>
#include <algorithm>
#include <limits>

namespace mox::internal {
namespace {

using AlignedArray = Eigen::Map<Eigen::ArrayXf, Eigen::Aligned32>;

// What lies behind the last element was never written; a number there keeps the arithmetic from
// trapping on it.
int64_t pad(float* values, int64_t count) {
  const int64_t padded = whole_vectors(count);
  std::fill(values + count, values + padded, 1.0f);
  return padded;
}

}  // namespace

void exp_in_place(float* values, int64_t count) {
  const int64_t padded = pad(values, count);
  AlignedArray array(values, padded);
  array = array.exp();
  for (int64_t i = 0; i < padded; ++i)
    values[i] = values[i] < std::numeric_limits<float>::min() ? 0.0f : values[i];
}

void log_in_place(float* values, int64_t count) {
  AlignedArray array(values, pad(values, count));
  array = array.log();
}

}  // namespace mox::internal
