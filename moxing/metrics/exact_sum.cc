#include "moxing/metrics/exact_sum.h"

#include <cmath>
#include <limits>
#include <utility>

namespace mox::metrics {
namespace {

// a + b = sum + error, exactly.
std::pair<double, double> sum_and_error(double a, double b) {
  if (std::abs(a) < std::abs(b)) std::swap(a, b);
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

}  // namespace

void ExactSum::add(double number) {
  if (!std::isfinite(number)) {
    special_ += number;
    return;
  }
  size_t kept = 0;
  for (const double part : parts_) {
    const auto [sum, error] = sum_and_error(number, part);
    if (error != 0) parts_[kept++] = error;
    number = sum;
  }
  parts_.resize(kept);
  if (!std::isfinite(number)) {
    special_ += number;
    parts_.clear();
  } else if (number != 0) {
    parts_.push_back(number);
  }
}

void ExactSum::add_product(double a, double b) {
  const double product = a * b;
  add(product);
  if (std::isfinite(product)) add(std::fma(a, b, -product));
}

void ExactSum::add_product(double a, double b, double c) {
  const double product = a * b;
  add_product(product, c);
  if (std::isfinite(product)) add_product(std::fma(a, b, -product), c);
}

void ExactSum::add(const ExactSum& other) {
  if (&other == this) return add(ExactSum(other));
  for (const double part : other.parts_) add(part);
  special_ += other.special_;
}

double ExactSum::rounded() const {
  if (parts_.empty()) return 0;
  size_t next = parts_.size() - 1;
  double high = parts_[next], low = 0;
  while (next > 0) {
    const auto [sum, error] = sum_and_error(high, parts_[--next]);
    high = sum;
    low = error;
    if (low != 0) break;
  }
  // Half-way cases: what follows decides, which a single addition could not see.
  if (next > 0 && ((low < 0 && parts_[next - 1] < 0) || (low > 0 && parts_[next - 1] > 0))) {
    const double twice = low * 2, up = high + twice;
    if (twice == up - high) high = up;
  }
  return high;
}

double ExactSum::value() const {
  if (special_ == 0) return rounded();
  // One NaN, whatever made it.
  return std::isnan(special_) ? std::numeric_limits<double>::quiet_NaN() : special_;
}

double ExactSum::remainder() const {
  if (special_ != 0) return 0;
  ExactSum rest = *this;
  rest.add(-rounded());
  return rest.rounded();
}

std::vector<double> ExactSum::parts() const {
  std::vector<double> all = parts_;
  if (special_ != 0) all.push_back(special_);
  return all;
}

}  // namespace mox::metrics
