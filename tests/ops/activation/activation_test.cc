// Activations: as all elementwise ops, and at the ends of float32.
#include "ops/activation/activation.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/gradients.h"
#include "ops/reduction/reduction.h"
#include "tests/ops/unary_test_case.h"

namespace mox::test {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

INSTANTIATE_TEST_SUITE_P(
    Activation, UnaryTest,
    ::testing::Values(UnaryCase{"sigmoid", [](const Tensor& x) { return sigmoid(x); }, logistic, -15, 15},
                      UnaryCase{"tanh", [](const Tensor& x) { return tanh(x); },
                                [](double x) { return std::tanh(x); }, -5, 5},
                      UnaryCase{"relu_positive", [](const Tensor& x) { return relu(x); },
                                [](double x) { return std::max(x, 0.0); }, 0.1f},
                      UnaryCase{"relu_negative", [](const Tensor& x) { return relu(x); },
                                [](double x) { return std::max(x, 0.0); }, -2.0f, -0.1f},
                      UnaryCase{"leaky_relu_positive", [](const Tensor& x) { return leaky_relu(x); },
                                [](double x) { return x; }, 0.1f},
                      UnaryCase{"leaky_relu_negative",
                                [](const Tensor& x) { return leaky_relu(x, {.slope = 0.1}); },
                                [](double x) { return 0.1 * x; }, -2.0f, -0.1f},
                      UnaryCase{"leaky_relu_flipped",
                                [](const Tensor& x) { return leaky_relu(x, {.slope = -0.5}); },
                                [](double x) { return -0.5 * x; }, -2.0f, -0.1f},
                      UnaryCase{"softplus", [](const Tensor& x) { return softplus(x); },
                                [](double x) { return std::log1p(std::exp(x)); }, -15, 15}),
    name_of_case);

TEST(Activation, ExtremesDoNotOverflow) {
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
  EXPECT_THAT(values([](const Tensor& t) { return sigmoid(t); }), ElementsAre(nothing, 1, nothing, 1));
}

// Also where the result does not tell x's sign: it is 0, or turned round.
TEST(Activation, TheGradientOfLeakyReluIsChosenByX) {
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

}  // namespace
}  // namespace mox::test
