#include "moxing/metrics/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace mox::metrics {
namespace {

double sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (const double number : numbers) sum.add(number);
  return sum.value();
}

TEST(ExactSum, LosesNothing) {
  EXPECT_EQ(sum_of({1e100, 1, -1e100}), 1);
  EXPECT_EQ(sum_of({0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}), 1);
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({5e-324, 1, -1}), 5e-324);
}

TEST(ExactSum, RoundsHalfWayCasesByWhatFollows) {
  const double half = 0x1p-53;
  EXPECT_EQ(sum_of({1, half}), 1);  // to even
  EXPECT_EQ(sum_of({1, half, 0x1p-200}), 1 + 0x1p-52);
  EXPECT_EQ(sum_of({1 + 0x1p-52, half}), 1 + 0x1p-51);
  EXPECT_EQ(sum_of({1 + 0x1p-52, half, -0x1p-200}), 1 + 0x1p-52);
}

TEST(ExactSum, HasTheSameBitsInAnyOrderAndInAnyParts) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  std::vector<double> numbers;
  for (int i = 0; i < 3000; ++i)
    numbers.push_back(std::ldexp(mantissa(random), static_cast<int>(random() % 120) - 60));
  const double expected = sum_of(numbers);
  for (int repetition = 0; repetition < 20; ++repetition) {
    std::shuffle(numbers.begin(), numbers.end(), random);
    std::vector<ExactSum> parts(1 + random() % 5);
    for (const double number : numbers) parts[random() % parts.size()].add(number);
    ExactSum all;
    for (const ExactSum& part : parts) all.add(part);
    EXPECT_EQ(all.value(), expected);
    ExactSum whole;
    for (const double number : numbers) whole.add(number);
    EXPECT_EQ(all.remainder(), whole.remainder());
  }
}

TEST(ExactSum, RemainderIsWhatTheValueRoundsAway) {
  ExactSum sum;
  sum.add(1);
  sum.add(0x1p-80);
  EXPECT_EQ(sum.value(), 1);
  EXPECT_EQ(sum.remainder(), 0x1p-80);
}

TEST(ExactSum, ProductsAreExact) {
  const double x = 1 + 0x1p-40;
  ExactSum sum;
  sum.add_product(x, x);
  sum.add(-1 - 0x1p-39);
  EXPECT_EQ(sum.value(), 0x1p-80);
  ExactSum cube;
  cube.add_product(x, x, x);
  for (const double term : {-1.0, -3 * 0x1p-40, -3 * 0x1p-80}) cube.add(term);
  EXPECT_EQ(cube.value(), 0x1p-120);
}

TEST(ExactSum, WhatIsNotFiniteDoesNotDependOnTheOrder) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sum_of({1, kInfinity, -5}), kInfinity);
  EXPECT_EQ(sum_of({-kInfinity, 1}), -kInfinity);
  EXPECT_TRUE(std::isnan(sum_of({kInfinity, 1, -kInfinity})));
  EXPECT_TRUE(std::isnan(sum_of({std::nan(""), kInfinity})));
  EXPECT_EQ(sum_of({1e308, 1e308}), kInfinity);
  ExactSum sum;
  sum.add_product(1e300, 1e300);
  EXPECT_EQ(sum.value(), kInfinity);
}

}  // namespace
}  // namespace mox::metrics
