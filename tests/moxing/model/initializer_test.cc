#include "moxing/model/initializer.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace mox {
namespace {

std::vector<float> values_of(const Initializer& initializer, const Shape& shape, uint64_t seed = 1,
                             std::string_view name = "W") {
  const Array array = initializer(shape, seed, name);
  EXPECT_EQ(array.shape(), shape);
  const std::span<const float> values = array.values<float>();
  return {values.begin(), values.end()};
}

struct Moments {
  double mean = 0, stddev = 0, largest = 0;
};
Moments moments_of(const std::vector<float>& values) {
  Moments moments;
  double squares = 0;
  for (float value : values) {
    moments.mean += value;
    squares += double{value} * value;
    moments.largest = std::max(moments.largest, std::fabs(double{value}));
  }
  const double count = static_cast<double>(values.size());
  moments.mean /= count;
  moments.stddev = std::sqrt(squares / count - moments.mean * moments.mean);
  return moments;
}

TEST(Initializer, ConstantsFillTheShape) {
  EXPECT_EQ(values_of(zeros(), {2, 2}), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(values_of(ones(), {3}), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(values_of(constant_initializer(-0.5), {}), (std::vector<float>{-0.5f}));
}

TEST(Initializer, EmptyShapesGiveEmptyArrays) {
  for (const Initializer& initializer : {zeros(), glorot_uniform(), he_normal(), orthogonal()})
    EXPECT_EQ(initializer({0, 5}, 1, "W").elements(), 0);
}

TEST(Initializer, UniformHasItsBoundsAndMoments) {
  const std::vector<float> values = values_of(random_uniform_initializer(2, 4), {100, 1000});
  for (float value : values) {
    ASSERT_GE(value, 2);
    ASSERT_LT(value, 4);
  }
  EXPECT_NEAR(moments_of(values).mean, 3, 0.01);
  EXPECT_NEAR(moments_of(values).stddev, 2 / std::sqrt(12.0), 0.01);
}

TEST(Initializer, NormalHasItsMoments) {
  const Moments moments = moments_of(values_of(random_normal_initializer(1, 0.5), {100, 1000}));
  EXPECT_NEAR(moments.mean, 1, 0.01);
  EXPECT_NEAR(moments.stddev, 0.5, 0.01);
}

TEST(Initializer, TruncatedNormalStaysWithinTwoDeviations) {
  const Moments moments = moments_of(values_of(truncated_normal_initializer(0, 0.1), {100, 1000}));
  EXPECT_LE(moments.largest, 0.2 + 1e-6);
  EXPECT_GT(moments.largest, 0.19);
  EXPECT_NEAR(moments.stddev, 0.08796, 0.001);  // of the truncated distribution
}

TEST(Initializer, FansOfDenseAndConvolutionWeights) {
  const auto expect = [](const Shape& shape, double in, double out) {
    EXPECT_EQ(compute_fans(shape).in, in) << to_string(shape);
    EXPECT_EQ(compute_fans(shape).out, out) << to_string(shape);
  };
  expect({}, 1, 1);
  expect({7}, 7, 7);
  expect({784, 10}, 784, 10);
  expect({64, 32, 5, 5}, 32 * 25, 64 * 25);
  expect({64, 1, 3, 3}, 9, 64 * 9);
}

TEST(Initializer, GlorotAndHeScaleWithTheFans) {
  const Shape dense = {400, 200}, convolution = {64, 32, 5, 5};
  const double glorot = std::sqrt(6.0 / 600), he = std::sqrt(6.0 / 800);
  const Moments glorot_bound = moments_of(values_of(glorot_uniform(), dense));
  EXPECT_LE(glorot_bound.largest, glorot * (1 + 1e-6));
  EXPECT_NEAR(glorot_bound.largest, glorot, glorot * 0.001);
  EXPECT_NEAR(moments_of(values_of(glorot_normal(), dense)).stddev, std::sqrt(2.0 / 600), 0.001);
  const Moments he_bound = moments_of(values_of(he_uniform(), convolution));
  EXPECT_LE(he_bound.largest, he * (1 + 1e-6));
  EXPECT_NEAR(he_bound.largest, he, he * 0.001);
  EXPECT_NEAR(moments_of(values_of(he_normal(), convolution)).stddev, std::sqrt(2.0 / 800), 0.001);
}

// matrix * matrix^T (or the other way round) is gain^2 times the identity.
void expect_orthogonal(const Shape& shape, double gain) {
  const std::vector<float> values = values_of(orthogonal(gain), shape);
  const size_t rows = static_cast<size_t>(shape[0]), columns = values.size() / rows;
  const bool by_rows = rows <= columns;
  const size_t vectors = std::min(rows, columns), length = std::max(rows, columns);
  const auto at = [&](size_t vector, size_t i) {
    return double{by_rows ? values[vector * columns + i] : values[i * columns + vector]};
  };
  for (size_t a = 0; a < vectors; ++a)
    for (size_t b = 0; b < vectors; ++b) {
      double product = 0;
      for (size_t i = 0; i < length; ++i) product += at(a, i) * at(b, i);
      EXPECT_NEAR(product, a == b ? gain * gain : 0, 1e-5) << to_string(shape) << " " << a << " " << b;
    }
}

TEST(Initializer, OrthogonalIsOrthogonal) {
  expect_orthogonal({16, 16}, 1);
  expect_orthogonal({30, 8}, 2);
  expect_orthogonal({8, 30}, 0.5);
  expect_orthogonal({8, 3, 3, 3}, 1);
  expect_orthogonal({1, 1}, 1);
}

TEST(Initializer, OrthogonalMatricesAreNotBiasedInSign) {
  int positive = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) positive += values_of(orthogonal(), {3, 3}, seed)[0] > 0;
  EXPECT_NEAR(positive, 100, 30);
}

TEST(Initializer, OrthogonalRefusesVectorsAndNamesTheVariable) {
  try {
    orthogonal()({10}, 1, "scope/b");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("variable \"scope/b\" of shape [10]"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 2"));
  }
}

TEST(Initializer, DependsOnSeedAndNameAndNothingElse) {
  for (const Initializer& initializer :
       {random_uniform_initializer(-1, 1), truncated_normal_initializer(0, 1), glorot_uniform(), he_normal(),
        orthogonal()}) {
    const std::vector<float> first = values_of(initializer, {8, 8}, 7, "a");
    values_of(initializer, {5, 5}, 7, "b");  // another variable in between
    EXPECT_EQ(values_of(initializer, {8, 8}, 7, "a"), first) << initializer.description();
    EXPECT_NE(values_of(initializer, {8, 8}, 8, "a"), first) << initializer.description();
    EXPECT_NE(values_of(initializer, {8, 8}, 7, "b"), first) << initializer.description();
  }
}

TEST(Initializer, ParametersAreChecked) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_THROW(constant_initializer(nan), InvalidArgument);
  EXPECT_THROW(constant_initializer(1e39), InvalidArgument);
  EXPECT_THROW(random_uniform_initializer(1, 0), InvalidArgument);
  EXPECT_THROW(random_uniform_initializer(0, infinity), InvalidArgument);
  EXPECT_THROW(random_normal_initializer(0, -1), InvalidArgument);
  EXPECT_THROW(truncated_normal_initializer(0, nan), InvalidArgument);
  EXPECT_THROW(orthogonal(infinity), InvalidArgument);
  EXPECT_THROW(Initializer("nothing", nullptr), InvalidArgument);
  EXPECT_EQ(values_of(random_uniform_initializer(2, 2), {2}), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace mox
