// Elementwise ops: values against plain loops, shapes, dtypes, errors, gradients.
#include <fmt/format.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/comparison/comparison.h"
#include "ops/gradients.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/shape.h"
#include "runtime/base/error.h"
#include "tests/ops/unary_test_case.h"
#include "tests/support/gradient_check.h"

namespace mox {
namespace {

using test::check_gradients;
using test::evaluate_op;
using test::expect_close;
using test::random_array;
using test::UnaryCase;
using test::UnaryTest;
using ::testing::AllOf;
using ::testing::HasSubstr;

using test::kInfinity;
using test::kNaN;

TEST_P(UnaryTest, AgreesWithAPlainLoop) {
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{7}, Shape{3, 1, 5}, Shape{0}, Shape{4, 0, 2}, Shape{100, 333}}) {
    SCOPED_TRACE(to_string(shape));
    const Array x = random_array(shape, 1, GetParam().low, GetParam().high);
    Array expected(DType::kFloat32, shape);
    for (size_t i = 0; i < static_cast<size_t>(x.elements()); ++i)
      expected.values<float>()[i] = static_cast<float>(GetParam().reference(x.values<float>()[i]));
    expect_close(evaluate_op(build(), {x}), expected, 2e-6, 1e-6);
  }
}

TEST_P(UnaryTest, PassesNaN) {
  const Array y = evaluate_op(build(), {Array::from<float>({3}, {kNaN, 0.5f, kNaN})});
  EXPECT_TRUE(std::isnan(y.values<float>()[0]));
  EXPECT_FALSE(std::isnan(y.values<float>()[1]));
}

TEST_P(UnaryTest, GradientAgreesWithFiniteDifferences) {
  if (!GetParam().differentiable) return;
  for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{1, 4, 1}, Shape{0, 3}}) {
    SCOPED_TRACE(to_string(shape));
    check_gradients(build(), {random_array(shape, 2, GetParam().low, GetParam().high)}, {.step = 2e-3});
  }
}

// The bits of an element must not depend on where in a tensor it stands: blocks, vectors and tails compute
// the same.
TEST_P(UnaryTest, BitsDoNotDependOnThePosition) {
  const Array x = random_array({1100}, 3, GetParam().low, GetParam().high);
  const Array whole = evaluate_op(build(), {x});
  for (int64_t begin : {1, 9, 531, 1099}) {
    const Array part = evaluate_op(build(), {x.rows(begin, 1100)});
    for (int64_t i = begin; i < 1100; ++i)
      ASSERT_EQ(part.values<float>()[i - begin], whole.values<float>()[i])
          << "element " << i << " reached from " << begin;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Arithmetic, UnaryTest,
    ::testing::Values(
        UnaryCase{"neg", [](const Tensor& x) { return neg(x); }, [](double x) { return -x; }},
        UnaryCase{"exp", [](const Tensor& x) { return exp(x); }, [](double x) { return std::exp(x); }},
        UnaryCase{"log", [](const Tensor& x) { return log(x); }, [](double x) { return std::log(x); }, 0.2f,
                  3.0f},
        UnaryCase{"sqrt", [](const Tensor& x) { return sqrt(x); }, [](double x) { return std::sqrt(x); },
                  0.2f, 3.0f},
        UnaryCase{"rsqrt", [](const Tensor& x) { return rsqrt(x); },
                  [](double x) { return 1 / std::sqrt(x); }, 0.2f, 3.0f},
        UnaryCase{"reciprocal", [](const Tensor& x) { return reciprocal(x); }, [](double x) { return 1 / x; },
                  0.3f, 3.0f},
        UnaryCase{"square", [](const Tensor& x) { return square(x); }, [](double x) { return x * x; }},
        UnaryCase{"abs_positive", [](const Tensor& x) { return abs(x); },
                  [](double x) { return std::abs(x); }, 0.1f},
        UnaryCase{"abs_negative", [](const Tensor& x) { return abs(x); },
                  [](double x) { return std::abs(x); }, -2.0f, -0.1f},
        UnaryCase{"sign", [](const Tensor& x) { return sign(x); }, [](double x) { return (x > 0) - (x < 0); },
                  -2, 2, false},
        UnaryCase{"floor", [](const Tensor& x) { return floor(x); }, [](double x) { return std::floor(x); },
                  -9, 9, false},
        UnaryCase{"round", [](const Tensor& x) { return round(x); },
                  [](double x) { return std::nearbyint(x); }, -9, 9, false},
        UnaryCase{"clip_inside", [](const Tensor& x) { return clip_by_value(x, -1, 1); },
                  [](double x) { return x; }, -0.9f, 0.9f},
        UnaryCase{"clip_above", [](const Tensor& x) { return clip_by_value(x, -1, 0.5); },
                  [](double) { return 0.5; }, 0.6f, 2.0f},
        // The largest double means no bound, which float32 has no number for.
        UnaryCase{"clip_unbounded", [](const Tensor& x) { return clip_by_value(x, -1e300, 1e300); },
                  [](double x) { return x; }},
        UnaryCase{"power_2", [](const Tensor& x) { return pow(x, 2); }, [](double x) { return x * x; }},
        UnaryCase{"power_3", [](const Tensor& x) { return pow(x, 3.0f); },
                  [](double x) { return x * x * x; }},
        UnaryCase{"power_-1.5", [](const Tensor& x) { return pow(x, -1.5); },
                  [](double x) { return std::pow(x, -1.5); }, 0.4f, 3.0f},
        UnaryCase{"power_of_2", [](const Tensor& x) { return pow(2.0, x); },
                  [](double x) { return std::exp2(x); }},
        UnaryCase{"mixed_scalars", [](const Tensor& x) { return 1 - (2.0f * x + 3) / 4.0; },
                  [](double x) { return 1 - (2 * x + 3) / 4; }}),
    test::name_of_case);

TEST(Elementwise, ExpOfExtremes) {
  const Array y = evaluate_op([](std::span<const Tensor> in) { return exp(in[0]); },
                              {Array::from<float>({4}, {-1000, 1000, -kInfinity, kInfinity})});
  EXPECT_THAT(y.values<float>(), ::testing::ElementsAre(0, kInfinity, 0, kInfinity));
}

TEST(Elementwise, IntegersWrapAround) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max(), kMin = std::numeric_limits<int32_t>::min();
  const Array a = Array::from<int32_t>({3}, {kMax, -7, kMin}), b = Array::from<int32_t>({3}, {1, 3, 1});
  auto values = [&](auto op) {
    const Array y = evaluate_op([&](std::span<const Tensor> in) { return op(in[0], in[1]); }, {a, b});
    return std::vector<int32_t>(y.values<int32_t>().begin(), y.values<int32_t>().end());
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(values([](auto x, auto y) { return x + y; }), ElementsAre(kMin, -4, kMin + 1));
  EXPECT_THAT(values([](auto x, auto y) { return x - y; }), ElementsAre(kMax - 1, -10, kMax));
  EXPECT_THAT(values([](auto x, auto y) { return x * y; }), ElementsAre(kMax, -21, kMin));
  EXPECT_THAT(values([](auto x, auto) { return -x; }), ElementsAre(-kMax, 7, kMin));
  EXPECT_THAT(values([](auto x, auto) { return abs(x); }), ElementsAre(kMax, 7, kMin));
  EXPECT_THAT(values([](auto x, auto) { return sign(x); }), ElementsAre(1, -1, -1));
  EXPECT_THAT(values([](auto x, auto y) { return maximum(x, y); }), ElementsAre(kMax, 3, 1));
  EXPECT_THAT(values([](auto x, auto y) { return select(less(x, y), y, 2 * x); }), ElementsAre(-2, 3, 1));
}

TEST(Elementwise, Integers64KeepAllBits) {
  const int64_t large = (int64_t{1} << 60) + 1;
  const Array y = evaluate_op([](std::span<const Tensor> in) { return in[0] + in[0] - 3; },
                              {Array::from<int64_t>({2}, {large, -large})});
  EXPECT_EQ(y.values<int64_t>()[0], 2 * large - 3);
  EXPECT_EQ(y.values<int64_t>()[1], -2 * large - 3);
}

TEST(Elementwise, IntegersAreNotDivided) {
  Graph graph;
  const Tensor i = graph.input(0, {DType::kInt32, {3}}, SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { i / i; }), AllOf(HasSubstr("div"), HasSubstr("float32")));
}

TEST(Elementwise, NumbersBecomeConstantsOfTheOtherDtype) {
  Graph graph;
  const Tensor i = graph.input(0, {DType::kInt32, {3}}, SourceLocation::current());
  EXPECT_EQ((i * 2.0).dtype(), DType::kInt32);  // a whole number, whatever it was written as
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { i + 0.5f; }),
      AllOf(HasSubstr("add"), HasSubstr("0.5"), HasSubstr("int32"), HasSubstr("elementwise_test.cc:")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { i + (int64_t{1} << 40); }),
              HasSubstr("not a value of int32"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { i* double(kNaN); }), HasSubstr("not a value of int32"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { add(1, 2); }), HasSubstr("at least one tensor"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { clip_by_value(graph.input(1, {}, {}), 2, 1); }),
              HasSubstr("low <= high"));
}

TEST(Elementwise, NumbersThatADtypeCannotHoldAreRefused) {
  constexpr uint64_t kLarge = uint64_t{1} << 63;
  const Array x = Array::from<float>({1}, {0});
  const Array sum = evaluate_op([](std::span<const Tensor> in) { return in[0] + kLarge; }, {x});
  EXPECT_EQ(sum.item(), 0x1p63);
  EXPECT_EQ(evaluate_op([](std::span<const Tensor> in) { return in[0] + kInfinity; }, {x}).item(), kInfinity);
  Graph graph;
  const auto input = [&](DType dtype) {
    return graph.input(static_cast<int>(dtype), {dtype, {1}}, SourceLocation::current());
  };
  for (const DType dtype : {DType::kInt32, DType::kInt64})
    EXPECT_THROW(input(dtype) + kLarge, InvalidArgument);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16})
    for (const double number : {1e39, -1e300, 0x1.ffffffp127})
      EXPECT_THROW(input(dtype) + number, InvalidArgument) << number;
  EXPECT_NO_THROW(input(DType::kFloat32) + -0x1.fffffep127);
  EXPECT_THROW(leaky_relu(input(DType::kFloat32), {.slope = kNaN}), InvalidArgument);
}

TEST(Elementwise, ErrorsOfOperatorsNameTheLineOfTheExpression) {
  Graph graph;
  const Tensor a = graph.input(0, {DType::kFloat32, {2}}, SourceLocation::current());
  const Tensor b = graph.input(1, {DType::kFloat32, {3}}, SourceLocation::current());
  const std::string here = fmt::format("elementwise_test.cc:{}", __LINE__ + 1);
  EXPECT_THAT(message_of<InvalidArgument>([&] { a + b; }), HasSubstr(here));
}

TEST(Elementwise, StopGradientIsAWall) {
  test::Build build = [](std::span<const Tensor> in) { return in[0] * stop_gradient(in[0]); };
  const Array x = Array::from<float>({2}, {2, 3});
  EXPECT_THAT(evaluate_op(build, {x}).values<float>(), ::testing::ElementsAre(4, 9));
}

}  // namespace
}  // namespace mox
