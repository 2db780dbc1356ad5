// The elementwise ops: values against plain loops, shapes, dtypes, errors, gradients.
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
#include "tests/support/gradient_check.h"

namespace mox {
namespace {

using test::check_gradients;
using test::evaluate_op;
using test::expect_close;
using test::random_array;
using ::testing::AllOf;
using ::testing::HasSubstr;

using test::kInfinity;
using test::kNaN;

struct UnaryCase {
  std::string name;
  std::function<Tensor(const Tensor&)> op;
  std::function<double(double)> reference;
  float low = -2, high = 2;  // where the op is smooth and the reference exact enough
  bool differentiable = true;
};

void PrintTo(const UnaryCase& value, std::ostream* os) { *os << value.name; }

class UnaryTest : public ::testing::TestWithParam<UnaryCase> {
 protected:
  Tensor apply(std::span<const Tensor> x) const { return GetParam().op(x[0]); }
  test::Build build() const {
    return [this](std::span<const Tensor> x) { return apply(x); };
  }
};

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

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

INSTANTIATE_TEST_SUITE_P(
    All, UnaryTest,
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
        UnaryCase{"sigmoid", [](const Tensor& x) { return sigmoid(x); }, logistic, -15, 15},
        UnaryCase{"tanh", [](const Tensor& x) { return tanh(x); }, [](double x) { return std::tanh(x); }, -5,
                  5},
        UnaryCase{"relu_positive", [](const Tensor& x) { return relu(x); },
                  [](double x) { return std::max(x, 0.0); }, 0.1f},
        UnaryCase{"relu_negative", [](const Tensor& x) { return relu(x); },
                  [](double x) { return std::max(x, 0.0); }, -2.0f, -0.1f},
        UnaryCase{"leaky_relu_positive", [](const Tensor& x) { return leaky_relu(x); },
                  [](double x) { return x; }, 0.1f},
        UnaryCase{"leaky_relu_negative", [](const Tensor& x) { return leaky_relu(x, {.slope = 0.1}); },
                  [](double x) { return 0.1 * x; }, -2.0f, -0.1f},
        UnaryCase{"leaky_relu_flipped", [](const Tensor& x) { return leaky_relu(x, {.slope = -0.5}); },
                  [](double x) { return -0.5 * x; }, -2.0f, -0.1f},
        UnaryCase{"softplus", [](const Tensor& x) { return softplus(x); },
                  [](double x) { return std::log1p(std::exp(x)); }, -15, 15},
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
    [](const auto& info) {
      std::string name = info.param.name;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

TEST(Elementwise, ExtremesDoNotOverflow) {
  const Array x = Array::from<float>({4}, {-1000, 1000, -kInfinity, kInfinity});
  auto values = [&](auto op) {
    const Array y = evaluate_op([&](std::span<const Tensor> in) { return op(in[0]); }, {x});
    return std::vector<float>(y.values<float>().begin(), y.values<float>().end());
  };
  using ::testing::ElementsAre;
  using ::testing::FloatNear;
  const auto nothing = FloatNear(0, 1e-30f);
  EXPECT_THAT(values([](const Tensor& t) { return softplus(t); }),
              ElementsAre(nothing, 1000, nothing, kInfinity));
  EXPECT_THAT(values([](const Tensor& t) { return tanh(t); }), ElementsAre(-1, 1, -1, 1));
  EXPECT_THAT(values([](const Tensor& t) { return exp(t); }),
              ElementsAre(nothing, kInfinity, nothing, kInfinity));
  EXPECT_THAT(values([](const Tensor& t) { return sigmoid(t); }), ElementsAre(nothing, 1, nothing, 1));
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

TEST(Elementwise, Comparisons) {
  const Array a = Array::from<float>({4}, {1, 2, 3, kNaN}), b = Array::from<float>({4}, {2, 2, 2, 2});
  auto values = [&](auto op) {
    const Array y = evaluate_op([&](std::span<const Tensor> in) { return op(in[0], in[1]); }, {a, b});
    return std::vector<bool>(y.values<bool>().begin(), y.values<bool>().end());
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(values([](auto x, auto y) { return greater(x, y); }), ElementsAre(false, false, true, false));
  EXPECT_THAT(values([](auto x, auto y) { return greater_equal(x, y); }),
              ElementsAre(false, true, true, false));
  EXPECT_THAT(values([](auto x, auto y) { return less(x, y); }), ElementsAre(true, false, false, false));
  EXPECT_THAT(values([](auto x, auto y) { return less_equal(x, y); }), ElementsAre(true, true, false, false));
  EXPECT_THAT(values([](auto x, auto y) { return equal(x, y); }), ElementsAre(false, true, false, false));
  EXPECT_THAT(values([](auto x, auto y) { return not_equal(x, y); }), ElementsAre(true, false, true, true));
  EXPECT_THAT(values([](auto x, auto y) { return logical_and(less_equal(x, y), greater_equal(x, y)); }),
              ElementsAre(false, true, false, false));
  EXPECT_THAT(values([](auto x, auto y) { return logical_or(less(x, y), greater(x, y)); }),
              ElementsAre(true, false, true, false));
  EXPECT_THAT(values([](auto x, auto y) { return logical_not(less(x, y)); }),
              ElementsAre(false, true, true, true));
  EXPECT_THAT(values([](auto x, auto) { return equal(x, 3); }), ElementsAre(false, false, true, false));
}

TEST(Elementwise, EqualityOfBytesAndBools) {
  const Array a = Array::from<uint8_t>({3}, {1, 200, 255}), b = Array::from<uint8_t>({3}, {1, 201, 255});
  const Array same = evaluate_op([](std::span<const Tensor> in) { return equal(in[0], in[1]); }, {a, b});
  EXPECT_THAT(same.values<bool>(), ::testing::ElementsAre(true, false, true));
  const Array truth = evaluate_op(
      [](std::span<const Tensor> in) { return not_equal(equal(in[0], in[1]), greater(in[2], 0)); },
      {a, b, Array::from<float>({3}, {1, 1, -1})});
  EXPECT_THAT(truth.values<bool>(), ::testing::ElementsAre(false, true, true));
}

TEST(Elementwise, SelectTakesGradientOnlyWhereItChose) {
  const Array condition = Array::from<bool>({2, 1}, {true, false});
  test::Build build = [](std::span<const Tensor> in) { return select(in[0], in[1], in[2]); };
  const Array y = evaluate_op(
      build, {condition, Array::from<float>({2, 2}, {1, 2, 3, 4}), Array::from<float>({2}, {5, 6})});
  EXPECT_THAT(y.values<float>(), ::testing::ElementsAre(1, 2, 5, 6));
  check_gradients(build, {condition, random_array({2, 2}, 11), random_array({2}, 12)});
  // What was not chosen may be NaN.
  const Array safe =
      evaluate_op([](std::span<const Tensor> in) { return select(greater(in[0], 0), log(in[0]), 0); },
                  {Array::from<float>({2}, {1, -1})});
  EXPECT_THAT(safe.values<float>(), ::testing::ElementsAre(0, 0));
  Graph graph;
  const Tensor x = graph.input(0, {DType::kFloat32, {2}}, SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { select(x, x, x); }), HasSubstr("condition of dtype bool"));
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

// Also where the result does not tell x's sign: it is 0, or turned round.
TEST(Elementwise, TheGradientOfLeakyReluIsChosenByX) {
  const Array x = Array::from<float>({6}, {-3, -1e-30f, -1e-44f, -0.0f, 1e-44f, 2});
  for (const double slope : {1e-50, 1e-40, 1e-20, 0.0, -1e-50, -0.5, 0.25, 3.0}) {
    const Array gradient = evaluate_op(
        [&](std::span<const Tensor> in) {
          return gradients(reduce_sum(leaky_relu(in[0], {.slope = slope})), in)[0];
        },
        {x});
    const auto below = static_cast<float>(slope);
    EXPECT_THAT(gradient.values<float>(), ::testing::ElementsAre(below, below, below, 1, 1, 1)) << slope;
  }
}

TEST(Elementwise, ErrorsOfOperatorsNameTheLineOfTheExpression) {
  Graph graph;
  const Tensor a = graph.input(0, {DType::kFloat32, {2}}, SourceLocation::current());
  const Tensor b = graph.input(1, {DType::kFloat32, {3}}, SourceLocation::current());
  const std::string here = "elementwise_test.cc:" + std::to_string(__LINE__ + 1);
  EXPECT_THAT(message_of<InvalidArgument>([&] { a + b; }), HasSubstr(here));
}

TEST(Elementwise, StopGradientIsAWall) {
  test::Build build = [](std::span<const Tensor> in) { return in[0] * stop_gradient(in[0]); };
  const Array x = Array::from<float>({2}, {2, 3});
  EXPECT_THAT(evaluate_op(build, {x}).values<float>(), ::testing::ElementsAre(4, 9));
}

}  // namespace
}  // namespace mox
