#include <gtest/gtest.h>

#include "ops/arithmetic/arithmetic.h"
#include "ops/gradients.h"
#include "ops/normalisation/normalisation.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/shape.h"
#include "runtime/base/error.h"
#include "runtime/graph/replica_exchange.h"
#include "tests/ops/kernel_testing.h"
#include "tests/support/evaluate.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

const std::vector<Shape> kShapes = {{4, 3, 2, 3}, {5, 4}, {2, 17, 3, 3}, {3, 2, 4}};

std::vector<Array> arguments_for(const Shape& shape) {
  return {random_array(shape, 1), random_array({shape[1]}, 2, 0.5f, 1.5f), random_array({shape[1]}, 3)};
}

TEST(SyncBatchNormOp, OfOneReplicaIsThatOfTheBatch) {
  for (const Shape& shape : kShapes) {
    const std::vector<Array> inputs = arguments_for(shape);
    const std::vector<Array> results = evaluate_ops(
        [](std::span<const Tensor> in) -> std::vector<Tensor> {
          const SyncBatchNormResult all = sync_batch_norm(in[0], in[1], in[2]);
          const BatchNormResult own = batch_norm(in[0], in[1], in[2]);
          return {all.y, own.y, all.mean, own.mean, all.variance, own.variance, all.values};
        },
        inputs);
    for (size_t pair = 0; pair < 3; ++pair) {
      const auto left = results[2 * pair].values<float>(), right = results[2 * pair + 1].values<float>();
      for (size_t i = 0; i < left.size(); ++i) ASSERT_NEAR(left[i], right[i], 2e-5) << to_string(shape);
    }
    EXPECT_EQ(results[6].item(), static_cast<double>(shape.elements()) / static_cast<double>(shape[1]));
  }
}

TEST(SyncBatchNormOp, OfAnEmptyBatchHasMeanAndVarianceZero) {
  for (const Shape& shape : {Shape{0, 3, 2, 2}, Shape{0, 3}, Shape{2, 3, 0, 4}}) {
    const std::vector<Array> results = evaluate_ops(
        [](std::span<const Tensor> in) -> std::vector<Tensor> {
          const SyncBatchNormResult all = sync_batch_norm(in[0], in[1], in[2]);
          std::vector<Tensor> values = gradients(reduce_sum(all.y), in);
          values.insert(values.end(), {all.mean, all.variance, all.values, all.y});
          return values;
        },
        arguments_for(shape));
    for (size_t i = 1; i < 6; ++i)  // the gradients of scale and offset, then the moments
      for (const float value : results[i].values<float>()) EXPECT_EQ(value, 0) << i << to_string(shape);
    EXPECT_EQ(results[6].shape(), shape);
  }
}

TEST(SyncBatchNormOp, HasTheGradientOfItsFormula) {
  for (const Shape& shape : kShapes)
    check_gradients([](std::span<const Tensor> in) { return sync_batch_norm(in[0], in[1], in[2]).y; },
                    arguments_for(shape));
}

TEST(ReplicaSum, OfOneReplicaIsWhatItIsGivenAndSoIsItsGradient) {
  check_gradients([](std::span<const Tensor> in) { return replica_sum(in[0]); }, {random_array({3, 4}, 1)});
}

// The gradient of x as a function of all arguments, which has gradients itself.
Build gradient_of_x(const Build& build) {
  return [build](std::span<const Tensor> in) {
    const Tensor y = build(in);
    return gradients(reduce_sum(square(y) * y), in.first(1))[0];
  };
}

TEST(SyncBatchNormOp, HasTheSecondDerivativeOfItsFormula) {
  for (const Shape& shape : {Shape{3, 2}, Shape{4, 3, 2, 3}})
    check_gradients(
        gradient_of_x([](std::span<const Tensor> in) { return sync_batch_norm(in[0], in[1], in[2]).y; }),
        arguments_for(shape));
}

TEST(ReplicaSum, HasTheSecondDerivativeOfItsOperand) {
  check_gradients(gradient_of_x([](std::span<const Tensor> in) { return square(replica_sum(in[0])); }),
                  {random_array({3, 4}, 1)});
}

// Three replicas that all give the same.
class ThreeAlike : public ReplicaExchange {
 public:
  void sum(std::string_view, std::span<float> values, Of) override {
    ++calls;
    for (float& value : values) value *= 3;
  }
  int calls = 0;
};

TEST(ReplicaSum, IsNeitherSharedBetweenCallsNorFoldedAway) {
  ThreeAlike replicas;
  const EnteredExchange entered(&replicas);
  // All replicas must make as many exchanges, whatever is known of their operands.
  const auto results = evaluate_ops(
      [](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {replica_sum(in[0]), replica_sum(in[0]), replica_sum(constant(2.0F))};
      },
      {Array::from<float>({2}, {1, 5})});
  EXPECT_EQ(results[0].values<float>()[1], 15);
  EXPECT_EQ(results[1].values<float>()[1], 15);
  EXPECT_EQ(results[2].item(), 6);
  EXPECT_EQ(replicas.calls, 3 * 3) << "evaluate_ops runs a graph three times";
}

TEST(SyncBatchNormOp, OfReplicasThatAreAlikeIsThatOfEach) {
  const std::vector<Array> inputs = arguments_for({4, 3, 2, 3});
  const auto y = [](std::span<const Tensor> in) -> std::vector<Tensor> {
    const SyncBatchNormResult all = sync_batch_norm(in[0], in[1], in[2]);
    return {all.y, all.values};
  };
  const std::vector<Array> alone = evaluate_ops(y, inputs);
  ThreeAlike replicas;
  const EnteredExchange entered(&replicas);
  const std::vector<Array> together = evaluate_ops(y, inputs);
  expect_close(together[0], alone[0], 1e-5, 1e-5);
  EXPECT_EQ(together[1].item(), 3 * alone[1].item());
}

TEST(SyncBatchNormOp, RefusesWhatDoesNotFit) {
  const auto refused = [](const Array& x, const Array& scale) {
    EXPECT_THROW(evaluate_ops([](std::span<const Tensor> in)
                                  -> std::vector<Tensor> { return {sync_batch_norm(in[0], in[1], in[1]).y}; },
                              {x, scale}),
                 InvalidArgument);
  };
  refused(random_array({3}, 1), random_array({3}, 2));
  refused(random_array({4, 3}, 1), random_array({4}, 2));
}

}  // namespace
}  // namespace mox::test
