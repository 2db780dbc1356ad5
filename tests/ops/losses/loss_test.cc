// Losses that are compositions: l2_loss, mean_squared_error, huber_loss, sigmoid_cross_entropy.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/gradients.h"
#include "ops/losses/losses.h"
#include "ops/reduction/reduction.h"
#include "runtime/base/error.h"
#include "tests/support/gradient_check.h"

namespace mox {
namespace {

using test::check_gradients;
using test::evaluate_op;
using test::random_array;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<Shape> kShapes = {{}, {5}, {1, 3}, {4, 6}, {0, 2}};

TEST(L2Loss, IsHalfTheSumOfSquares) {
  const test::Build build = [](std::span<const Tensor> in) { return l2_loss(in[0]); };
  for (const Shape& shape : kShapes) {
    const Array x = random_array(shape, 1);
    double sum = 0;
    for (const float value : x.values<float>()) sum += 0.5 * value * value;
    const Array loss = evaluate_op(build, {x});
    EXPECT_EQ(loss.shape(), Shape{});
    EXPECT_NEAR(loss.item(), sum, 1e-5);
    check_gradients(build, {x});
  }
}

TEST(MeanSquaredError, IsTheMeanOfSquares) {
  const test::Build build = [](std::span<const Tensor> in) { return mean_squared_error(in[0], in[1]); };
  const Array x = random_array({3, 4}, 2), y = random_array({3, 4}, 3);
  double sum = 0;
  for (size_t i = 0; i < 12; ++i) sum += std::pow(x.values<float>()[i] - y.values<float>()[i], 2);
  EXPECT_NEAR(evaluate_op(build, {x, y}).item(), sum / 12, 1e-6);
  check_gradients(build, {x, y});
}

TEST(HuberLoss, IsQuadraticThenLinear) {
  const test::Build build = [](std::span<const Tensor> in) {
    return huber_loss(in[0], in[1], {.delta = 0.5});
  };
  const Array x = Array::from<float>({4}, {0.2f, -0.3f, 2, -3}), y = Array::from<float>({4}, {0, 0, 0, 0});
  const double expected = (0.5 * 0.04 + 0.5 * 0.09 + 0.5 * (2 - 0.25) + 0.5 * (3 - 0.25)) / 4;
  EXPECT_NEAR(evaluate_op(build, {x, y}).item(), expected, 1e-6);
  check_gradients(build, {x, y});
  Graph graph;
  const Tensor t = graph.input(0, {DType::kFloat32, {2}}, SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { huber_loss(t, t, {.delta = 0}); }),
              AllOf(HasSubstr("huber_loss"), HasSubstr("delta > 0")));
  // 0 * infinity is no number, and a delta that is 0 in float32 makes every loss 0.
  for (const double delta : {static_cast<double>(test::kInfinity), 1e300, 1e-300, std::nan("")})
    EXPECT_THROW(huber_loss(t, t, {.delta = delta}), InvalidArgument) << delta;
}

TEST(SigmoidCrossEntropy, AgreesWithTheDefinition) {
  const test::Build build = [](std::span<const Tensor> in) { return sigmoid_cross_entropy(in[0], in[1]); };
  for (const Shape& shape : kShapes) {
    const Array x = random_array(shape, 4, -4, 4), z = random_array(shape, 5, 0, 1);
    Array expected(DType::kFloat32, shape);
    for (size_t i = 0; i < static_cast<size_t>(x.elements()); ++i) {
      const double s = 1 / (1 + std::exp(-static_cast<double>(x.values<float>()[i]))),
                   label = z.values<float>()[i];
      expected.values<float>()[i] = static_cast<float>(-label * std::log(s) - (1 - label) * std::log(1 - s));
    }
    test::expect_close(evaluate_op(build, {x, z}), expected, 1e-5, 1e-6);
    check_gradients(build, {x, z});
  }
  // Logits that would overflow a naive form.
  const Array extreme =
      evaluate_op(build, {Array::from<float>({2}, {200, -200}), Array::from<float>({2}, {0, 0})});
  EXPECT_THAT(extreme.values<float>(), ::testing::ElementsAre(200, ::testing::FloatNear(0, 1e-30f)));
}

// The loss of logits, its slope and its curvature.
std::vector<Tensor> with_derivatives(std::span<const Tensor> in) {
  const Tensor loss = sigmoid_cross_entropy(in[0], in[1]);
  const Tensor slope = gradients(reduce_sum(loss), in.first(1))[0];
  return {loss, slope, gradients(reduce_sum(slope), in.first(1))[0]};
}

TEST(SigmoidCrossEntropy, KeepsItsDigitsWhereTheLogitIsRight) {
  const std::vector<float> logits{10, 12, 15, 17, 30, -10, -12, -15, -17, -30, 0, 0, 15, -15};
  const std::vector<float> labels{1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0.75, 0.25};
  const auto shape = Shape{static_cast<int64_t>(logits.size())};
  const std::vector<Array> found = test::evaluate_ops(
      with_derivatives, {Array::from<float>(shape, logits), Array::from<float>(shape, labels)}, 1e-12);
  for (size_t i = 0; i < logits.size(); ++i) {
    const double x = logits[i], z = labels[i], s = 1 / (1 + std::exp(-x)), not_s = 1 / (1 + std::exp(x));
    const auto expect = [&](const char* what, size_t of, double value, double absolute = 0) {
      EXPECT_NEAR(found[of].values<float>()[i], value, absolute + 1e-3 * std::abs(value))
          << what << " at " << x << " for " << z;
    };
    expect("loss", 0, std::max(x, 0.0) - x * z + std::log1p(std::exp(-std::abs(x))));
    expect("slope", 1, (1 - z) * s - z * not_s);
    expect("curvature", 2, s * not_s, 1e-7);  // s (1 - s), where s may be all but 1
  }
}

TEST(Losses, RefuseOtherShapesRatherThanBroadcast) {
  Graph graph;
  const Tensor a = graph.input(0, {DType::kFloat32, {4, 1}}, SourceLocation::current());
  const Tensor b = graph.input(1, {DType::kFloat32, {4}}, SourceLocation::current());
  for (const auto& loss :
       std::vector<std::function<void()>>{[&] { mean_squared_error(a, b); }, [&] { huber_loss(a, b); },
                                          [&] { sigmoid_cross_entropy(a, b); }})
    EXPECT_THAT(message_of<InvalidArgument>(loss), AllOf(HasSubstr("one shape"), HasSubstr("[4, 1]"),
                                                         HasSubstr("[4]"), HasSubstr("loss_test.cc:")));
}

}  // namespace
}  // namespace mox
