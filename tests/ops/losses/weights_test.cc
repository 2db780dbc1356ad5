// class_weights and weighted_mean, and losses that they make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "runtime/base/error.h"
#include "tests/support/gradient_check.h"

namespace mox {
namespace {

using test::check_gradients;
using test::evaluate_op;
using test::random_array;
using ::testing::HasSubstr;

TEST(ClassWeights, AreThoseOfTheLabels) {
  const test::Build build = [](std::span<const Tensor> in) { return class_weights(in[0], {1, 20, 0.5}); };
  const Array labels = Array::from<int32_t>({4}, {2, 0, 1, 1});
  test::expect_close(evaluate_op(build, {labels}), Array::from<float>({4}, {0.5F, 1, 20, 20}), 0, 0);
  EXPECT_THROW(evaluate_op(build, {Array::from<int32_t>({1}, {3})}), InvalidArgument);
  EXPECT_THAT(
      message_of<InvalidArgument>([&] {
        evaluate_op([](std::span<const Tensor> in) { return class_weights(in[0], {1, -1}); }, {labels});
      }),
      HasSubstr("the weight of class 1 is -1"));
  EXPECT_THROW(evaluate_op(
                   [](std::span<const Tensor> in) {
                     return class_weights(in[0], {1, 1e39});
                   },
                   {labels}),
               InvalidArgument);
}

TEST(ClassWeights, AreNotAllZero) {
  const auto refusal = message_of<InvalidArgument>([] {
    evaluate_op(
        [](std::span<const Tensor> in) {
          return class_weights(in[0], {0, 0});
        },
        {Array::from<int32_t>({1}, {0})});
  });
  EXPECT_THAT(refusal, HasSubstr("the weights of all 2 classes are 0"));
  EXPECT_THAT(refusal, HasSubstr("weights_test.cc:"));
}

TEST(ClassWeights, WeighALossAndItsGradient) {
  const Array labels = Array::from<int32_t>({4}, {2, 0, 1, 1});
  const test::Build build = [&](std::span<const Tensor> in) {
    const Tensor y = constant(labels);
    return reduce_mean(class_weights(y, {1, 20, 0.5}) * sparse_softmax_cross_entropy(in[0], y));
  };
  const Array logits = random_array({4, 3}, 1);
  const Array each = evaluate_op(
      [&](std::span<const Tensor> in) { return sparse_softmax_cross_entropy(in[0], constant(labels)); },
      {logits});
  const auto loss = each.values<float>();
  EXPECT_NEAR(evaluate_op(build, {logits}).item(), (0.5 * loss[0] + loss[1] + 20 * (loss[2] + loss[3])) / 4,
              1e-5);
  check_gradients(build, {logits});
}

TEST(WeightedMean, IsTheSumOverTheWeights) {
  const test::Build build = [](std::span<const Tensor> in) { return weighted_mean(in[0], in[1]); };
  const Array values = Array::from<float>({3}, {1, 2, 6});
  EXPECT_FLOAT_EQ(static_cast<float>(evaluate_op(build, {values, Array::from<float>({3}, {1, 0, 3})}).item()),
                  19.0F / 4);
  EXPECT_EQ(evaluate_op(build, {values, Array::from<float>({3}, {0, 0, 0})}).item(), 0);
  check_gradients(build, {random_array({3, 2}, 4), random_array({3, 2}, 5, 0.5, 2)});
  check_gradients(build, {random_array({3, 2}, 4), random_array({3, 2}, 5, -2, -0.5)});
  const test::BuildMany slopes = [&](std::span<const Tensor> in) {
    return gradients(build(in), std::vector{in[0], in[1]});
  };
  for (const Array& slope : test::evaluate_ops(slopes, {values, Array::from<float>({3}, {0, 0, 0})}))
    test::expect_close(slope, Array::from<float>({3}, {0, 0, 0}), 0, 0);
  EXPECT_THROW(evaluate_op(build, {values, Array(DType::kFloat32, {2})}), InvalidArgument);
}

}  // namespace
}  // namespace mox
