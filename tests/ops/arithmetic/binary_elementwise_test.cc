// The elementwise ops of two operands: broadcasting, gradients, errors, extremes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ops/arithmetic/arithmetic.h"
#include "ops/gradients.h"
#include "ops/reduction/reduction.h"
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

struct BinaryCase {
  std::string name;
  std::function<Tensor(const Tensor&, const Tensor&)> op;
  std::function<double(double, double)> reference;
};

void PrintTo(const BinaryCase& value, std::ostream* os) { *os << value.name; }

class BinaryTest : public ::testing::TestWithParam<BinaryCase> {
 protected:
  test::Build build() const {
    return [](std::span<const Tensor> x) { return GetParam().op(x[0], x[1]); };
  }
};

struct ShapePair {
  Shape a, b, result;
};

std::vector<ShapePair> shape_pairs() {
  return {{{}, {}, {}},
          {{5}, {}, {5}},
          {{}, {2, 3}, {2, 3}},
          {{4, 3}, {4, 3}, {4, 3}},
          {{4, 3}, {3}, {4, 3}},
          {{4, 1}, {4, 3}, {4, 3}},
          {{4, 1}, {1, 3}, {4, 3}},
          {{2, 3, 1, 5}, {3, 4, 1}, {2, 3, 4, 5}},
          {{1, 1, 1}, {2}, {1, 1, 2}},
          {{0, 3}, {3}, {0, 3}},
          {{0}, {1}, {0}},
          {{2, 1, 0}, {5, 1}, {2, 5, 0}}};
}

// The index into an operand of `shape` for element `i` of the result.
size_t operand_index(const Shape& shape, const Shape& result, int64_t i) {
  int64_t index = 0, stride = 1;
  for (int axis = result.rank() - 1; axis >= 0; --axis) {
    const int64_t position = i % result[axis];
    i /= result[axis];
    const int own = axis - (result.rank() - shape.rank());
    if (own < 0) continue;
    index += (shape[own] == 1 ? 0 : position) * stride;
    stride *= shape[own];
  }
  return static_cast<size_t>(index);
}

TEST_P(BinaryTest, BroadcastsAsNumPy) {
  std::vector<ShapePair> pairs = shape_pairs();
  pairs.push_back({{700, 10}, {10}, {700, 10}});                   // a short period
  pairs.push_back({{9, 1023}, {1023}, {9, 1023}});                 // a long one
  pairs.push_back({{9, 333}, {333}, {9, 333}});                    // one that no whole block holds
  pairs.push_back({{6, 40, 1, 1}, {6, 40, 5, 7}, {6, 40, 5, 7}});  // inner broadcasting
  pairs.push_back({{40, 1, 1}, {6, 40, 33, 7}, {6, 40, 33, 7}});
  for (const auto& [a_shape, b_shape, shape] : pairs) {
    SCOPED_TRACE(to_string(a_shape) + " with " + to_string(b_shape));
    const Array a = random_array(a_shape, 4, 0.5f, 2.0f), b = random_array(b_shape, 5, 0.5f, 2.0f);
    Array expected(DType::kFloat32, shape);
    for (int64_t i = 0; i < expected.elements(); ++i)
      expected.values<float>()[i] =
          static_cast<float>(GetParam().reference(a.values<float>()[operand_index(a_shape, shape, i)],
                                                  b.values<float>()[operand_index(b_shape, shape, i)]));
    expect_close(evaluate_op(build(), {a, b}), expected, 3e-6, 1e-6);
  }
}

TEST_P(BinaryTest, GradientsAgreeWithFiniteDifferences) {
  for (const auto& [a_shape, b_shape, shape] : shape_pairs()) {
    SCOPED_TRACE(to_string(a_shape) + " with " + to_string(b_shape));
    // Apart, so that maximum and minimum are differentiable.
    check_gradients(build(), {random_array(a_shape, 6, 0.5f, 1.0f), random_array(b_shape, 7, 1.1f, 1.5f)},
                    {.step = 4e-3});
    check_gradients(build(), {random_array(a_shape, 8, 1.1f, 1.5f), random_array(b_shape, 9, 0.5f, 1.0f)},
                    {.step = 4e-3});
  }
}

TEST_P(BinaryTest, OfATensorWithItself) {
  const Array x = random_array({37}, 10, 0.5f, 2.0f);
  Array expected(DType::kFloat32, {37});
  for (size_t i = 0; i < 37; ++i)
    expected.values<float>()[i] =
        static_cast<float>(GetParam().reference(x.values<float>()[i], x.values<float>()[i]));
  expect_close(evaluate_op([&](std::span<const Tensor> in) { return GetParam().op(in[0], in[0]); }, {x}),
               expected);
}

TEST_P(BinaryTest, RefusesShapesThatDoNotBroadcast) {
  Graph graph;
  GraphScope scope(graph);
  const Tensor a = graph.input(0, {DType::kFloat32, {32, 10}}, SourceLocation::current());
  const Tensor b = graph.input(1, {DType::kFloat32, {11}}, SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { GetParam().op(a, b); }),
              AllOf(HasSubstr(GetParam().name), HasSubstr("elementwise_test.cc:"), HasSubstr("[32, 10]"),
                    HasSubstr("[11]"), HasSubstr("broadcast")));
  const Tensor i = graph.input(2, {DType::kInt32, {10}}, SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { GetParam().op(a, i); }),
              AllOf(HasSubstr("one dtype"), HasSubstr("int32")));
  const Tensor u = graph.input(3, {DType::kUInt8, {10}}, SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { GetParam().op(u, u); }),
              AllOf(HasSubstr("float32"), HasSubstr("uint8")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { GetParam().op(a, Tensor()); }),
              HasSubstr("undefined tensor"));
}

INSTANTIATE_TEST_SUITE_P(
    All, BinaryTest,
    ::testing::Values(
        BinaryCase{"add", [](const Tensor& a, const Tensor& b) { return a + b; }, std::plus<>()},
        BinaryCase{"sub", [](const Tensor& a, const Tensor& b) { return a - b; }, std::minus<>()},
        BinaryCase{"mul", [](const Tensor& a, const Tensor& b) { return a * b; }, std::multiplies<>()},
        BinaryCase{"div", [](const Tensor& a, const Tensor& b) { return a / b; }, std::divides<>()},
        BinaryCase{"pow", [](const Tensor& a, const Tensor& b) { return pow(a, b); },
                   [](double a, double b) { return std::pow(a, b); }},
        BinaryCase{"maximum", [](const Tensor& a, const Tensor& b) { return maximum(a, b); },
                   [](double a, double b) { return std::max(a, b); }},
        BinaryCase{"minimum", [](const Tensor& a, const Tensor& b) { return minimum(a, b); },
                   [](double a, double b) { return std::min(a, b); }}),
    [](const auto& info) { return info.param.name; });

TEST(BinaryElementwise, MaximumAndMinimumPassNaNFromEitherSide) {
  const Array a = Array::from<float>({2}, {kNaN, 1}), b = Array::from<float>({2}, {1, kNaN});
  for (const bool largest : {true, false}) {
    const Array y = evaluate_op(
        [&](std::span<const Tensor> in) { return largest ? maximum(in[0], in[1]) : minimum(in[0], in[1]); },
        {a, b});
    EXPECT_TRUE(std::isnan(y.values<float>()[0]));
    EXPECT_TRUE(std::isnan(y.values<float>()[1]));
  }
}

TEST(BinaryElementwise, PowersAtTheEdges) {
  const Array x = Array::from<float>({6}, {0, -2, -2, 2, 1, 0});
  const Array y = Array::from<float>({6}, {0, 3, 0.5f, -1, kInfinity, 2});
  const Array z = evaluate_op([](std::span<const Tensor> in) { return pow(in[0], in[1]); }, {x, y});
  EXPECT_EQ(z.values<float>()[0], 1);
  EXPECT_NEAR(z.values<float>()[1], -8, 1e-5);
  EXPECT_TRUE(std::isnan(z.values<float>()[2]));
  EXPECT_NEAR(z.values<float>()[3], 0.5, 1e-6);
  EXPECT_EQ(z.values<float>()[4], 1);
  EXPECT_EQ(z.values<float>()[5], 0);
}

// As IEEE 754 has them, whichever way they are computed: a root alone would be -0 and no number.
TEST(BinaryElementwise, PowersOfOneHalfAtTheEdges) {
  const Array x = Array::from<float>({6}, {-kInfinity, -0.0f, 0, kInfinity, 4, -2});
  const Array by_number = evaluate_op([](std::span<const Tensor> in) { return pow(in[0], 0.5); }, {x}),
              by_tensor = evaluate_op([](std::span<const Tensor> in) { return pow(in[0], in[1]); },
                                      {x, Array::scalar(0.5f)});
  for (const Array& y : {by_number, by_tensor}) {
    EXPECT_EQ(y.values<float>()[0], kInfinity);
    EXPECT_EQ(y.values<float>()[1], 0);
    EXPECT_FALSE(std::signbit(y.values<float>()[1]));
    EXPECT_EQ(y.values<float>()[2], 0);
    EXPECT_EQ(y.values<float>()[3], kInfinity);
    EXPECT_EQ(y.values<float>()[4], 2);
    EXPECT_TRUE(std::isnan(y.values<float>()[5]));
  }
  EXPECT_EQ(evaluate_op(
                [](std::span<const Tensor> in) {
                  return gradients(reduce_sum(pow(in[0], 0.5)), std::vector<Tensor>{in[0]})[0];
                },
                {Array::from<float>({2}, {-kInfinity, 4})})
                .values<float>()[1],
            0.25f);
}

// As a formula y x^(y-1) is 0 times infinity there.
TEST(BinaryElementwise, TheSlopeOfAPowerOfZeroIsZeroAtZero) {
  const Array x = Array::from<float>({3}, {0, 3, 0}), y = Array::from<float>({3}, {0, 0, 3});
  const auto slopes_of = [&](const std::function<Tensor(std::span<const Tensor>)>& power) {
    return evaluate_op(
        [&](std::span<const Tensor> in) {
          return gradients(reduce_sum(add(power(in), in[0])), std::vector<Tensor>{in[0]})[0];
        },
        {x, y});
  };
  const Array by_number = slopes_of([](auto in) { return pow(in[0], 0.0); }),
              by_tensor = slopes_of([](auto in) { return pow(in[0], in[1]); });
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(by_number.values<float>()[i], 1) << i;
    EXPECT_EQ(by_tensor.values<float>()[i], 1) << i;
  }
}

TEST(BinaryElementwise, ThePowerOfZeroHasSecondDerivatives) {
  const Array x = Array::from<float>({3}, {0, 2, 3}), y = Array::from<float>({3}, {0, 0, 2});
  const std::vector<Array> second = test::evaluate_ops(
      [](std::span<const Tensor> in) {
        const Tensor by_x = gradients(reduce_sum(pow(in[0], in[1])), std::vector<Tensor>{in[0]})[0];
        return gradients(reduce_sum(by_x), std::vector<Tensor>{in[0], in[1]});
      },
      {x, y});
  EXPECT_THAT(second[0].values<float>(), ::testing::ElementsAre(0, 0, 2));
  EXPECT_NEAR(second[1].values<float>()[1], 0.5, 1e-5);                        // 1 / x
  EXPECT_NEAR(second[1].values<float>()[2], 3 * (1 + 2 * std::log(3)), 1e-4);  // x^(y-1) (1 + y ln x)
}

}  // namespace
}  // namespace mox
