// softmax and log_softmax.
#include "ops/softmax/softmax.h"

#include <gmock/gmock-more-matchers.h>

#include <cmath>
#include <limits>

#include "tests/ops/run_op.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

// In double, straight from the definition.
std::vector<double> reference(const Array& x, int axis, bool logarithm) {
  int64_t inner = 1;
  for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.shape()[i];
  const int64_t extent = x.shape()[axis], outer = x.elements() / std::max<int64_t>(1, extent * inner);
  std::vector<double> y(static_cast<size_t>(x.elements()));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t j) { return static_cast<size_t>((o * extent + j) * inner + i); };
      double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t j = 0; j < extent; ++j) maximum = std::max<double>(maximum, x.values<float>()[at(j)]);
      for (int64_t j = 0; j < extent; ++j) sum += std::exp(x.values<float>()[at(j)] - maximum);
      for (int64_t j = 0; j < extent; ++j) {
        const double shifted = x.values<float>()[at(j)] - maximum - std::log(sum);
        y[at(j)] = logarithm ? shifted : std::exp(shifted);
      }
    }
  return y;
}

void expect_agrees(const Shape& shape, int64_t axis, float range = 3) {
  const Array x = random_array(shape, 7, -range, range);
  for (const bool logarithm : {false, true}) {
    const Array y =
        run_op([&](Tensors in) { return logarithm ? log_softmax(in[0], axis) : softmax(in[0], axis); }, {x});
    const auto expected = reference(x, shape.normalized_axis(axis), logarithm);
    ASSERT_EQ(y.type(), x.type());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(y.values<float>()[i], expected[i], 1e-6 + 3e-6 * std::fabs(expected[i]))
          << to_string(shape) << " axis " << axis << " element " << i;
  }
}

TEST(Softmax, AgreesWithTheDefinitionAlongAnyAxis) {
  for (int64_t axis : {0, 1, 2, -1}) {
    expect_agrees({3, 4, 5}, axis);
    expect_agrees({1, 1, 1}, axis);
    expect_agrees({2, 0, 3}, axis);
  }
  expect_agrees({100, 10}, -1);
  expect_agrees({700, 1}, -1);
  expect_agrees({33, 67}, 0);
  expect_agrees({5, 130, 71}, 1);
}

TEST(Softmax, AgreesOnRowsLongerThanItsBuffer) {
  expect_agrees({3, 10000}, -1);
  expect_agrees({2, 4096}, -1);
  expect_agrees({2, 4097}, -1);
}

TEST(Softmax, IsStableForLargeLogits) {
  const Array x = Array::from<float>({2, 3}, {10000, 9999, -10000, -1e30f, -1e30f, -1e30f});
  const Array y = run_op([](Tensors in) { return softmax(in[0]); }, {x});
  EXPECT_NEAR(y.values<float>()[0], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_EQ(y.values<float>()[2], 0);
  EXPECT_NEAR(y.values<float>()[4], 1.0 / 3, 1e-6);
  const Array z = run_op([](Tensors in) { return log_softmax(in[0]); }, {x});
  EXPECT_NEAR(z.values<float>()[0], -std::log1p(std::exp(-1.0)), 1e-6);
  EXPECT_EQ(z.values<float>()[2], -20000.0f - static_cast<float>(std::log1p(std::exp(-1.0))));
}

TEST(Softmax, TreatsMinusInfinityAsAbsentAndSpreadsNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Array x = Array::from<float>({3, 2}, {-infinity, 3, std::nanf(""), 1, infinity, 1});
  for (const Shape& shape : {Shape{3, 2}, Shape{3, 2, 1}}) {
    const Array y = run_op([](Tensors in) { return softmax(in[0], 1); }, {x.reshaped(shape)});
    EXPECT_EQ(y.values<float>()[0], 0);
    EXPECT_EQ(y.values<float>()[1], 1);
    for (size_t i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(y.values<float>()[i])) << i;
  }
}

TEST(Softmax, GivesARowTheSameBitsAtAnyPlace) {  // in the batch, hence in any split of it
  const Array x = random_array({57, 13}, 3, -4, 4);
  const Array whole = run_op([](Tensors in) { return softmax(in[0]); }, {x});
  for (int64_t row = 0; row < 57; ++row) {
    const Array alone = run_op([](Tensors in) { return softmax(in[0]); }, {x.rows(row, row + 1).clone()});
    EXPECT_EQ(values_of<float>(alone), values_of<float>(whole.rows(row, row + 1)));
  }
}

TEST(Softmax, HasTheGradientOfItsDefinition) {
  for (int64_t axis : {0, 1, -1})
    for (const Shape& shape : {Shape{3, 4, 5}, Shape{1, 3, 1}, Shape{2, 0, 3}}) {
      const std::vector<Array> x{random_array(shape, 11)};
      check_gradients([&](Tensors in) { return softmax(in[0], axis); }, x);
      check_gradients([&](Tensors in) { return log_softmax(in[0], axis); }, x);
    }
}

TEST(Softmax, HasSecondDerivatives) {
  for (int64_t axis : {0, 1}) {
    const std::vector<Array> inputs{random_array({3, 4}, 11), random_array({3, 4}, 12)};
    check_gradients([&](Tensors in) { return softmax_gradient(in[0], in[1], axis); }, inputs);
    check_gradients([&](Tensors in) { return log_softmax_gradient(in[0], in[1], axis); }, inputs);
  }
}

TEST(Softmax, RefusesWrongTypesAndAxes) {
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{softmax(in[0])}; }, {{DType::kInt32, {2}}}),
              HasSubstr("float32"));
  EXPECT_THAT(
      build_error([](Tensors in) { return std::vector{log_softmax(in[0], 2)}; }, {{DType::kFloat32, {2, 3}}}),
      HasSubstr("an axis in [-2, 2), not 2"));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{softmax(in[0])}; }, {{DType::kFloat32, {}}}),
              HasSubstr("at least one axis"));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{softmax_gradient(in[0], in[1])}; },
                          {{DType::kFloat32, {2}}, {DType::kFloat32, {3}}}),
              HasSubstr("inputs of one type"));
}

}  // namespace
}  // namespace mox::test
