// The rewrite rule that merges chains of elementwise ops.
#include "ops/fusion/elementwise_rule.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "tests/support/gradient_check.h"

namespace mox {
namespace {

using test::evaluate_op;
using test::random_array;

// The names of the ops that are left after fusing what `build` makes.
std::vector<std::string> fused_ops(const test::BuildMany& build, const std::vector<TensorType>& inputs) {
  Graph graph;
  GraphScope scope(graph);
  std::vector<Tensor> tensors;
  for (const TensorType& type : inputs)
    tensors.push_back(graph.input(static_cast<int>(tensors.size()), type, SourceLocation::current()));
  GraphRewriter rewriter(graph, build(tensors));
  rewriter.apply(elementwise_chain_rule().rule);
  std::vector<std::string> names;
  for (const auto& node : rewriter.graph().nodes())
    if (node->op->kind == Op::Kind::kCompute) names.emplace_back(node->op->name);
  return names;
}

const TensorType kMatrix{DType::kFloat32, {3, 5}};

TEST(ElementwiseFusion, MergesAChain) {
  const auto names =
      fused_ops([](std::span<const Tensor> in) { return std::vector{relu(exp(in[0]) * 2 - 1)}; }, {kMatrix});
  EXPECT_THAT(names, ::testing::ElementsAre("elementwise"));
}

// What a chain reads and gives may be whole numbers or truths; between them it computes in float32.
TEST(ElementwiseFusion, ComputesInFloatBetweenIntegers) {
  const auto halved = [](std::span<const Tensor> in) {
    return cast(cast(in[0], DType::kFloat32) * 0.5f, DType::kInt32);
  };
  const auto above = [](std::span<const Tensor> in) {
    return greater(cast(in[0], DType::kFloat32) / 255, 0.3f);
  };
  EXPECT_THAT(fused_ops(
                  [&](std::span<const Tensor> in) {
                    return std::vector{halved(in), above(in)};
                  },
                  {{DType::kInt32, {3, 5}}}),
              ::testing::ElementsAre("elementwise", "elementwise"));
  const Array counts = evaluate_op(halved, {Array::from<int32_t>({4}, {1, 2, 10, -7})});
  EXPECT_THAT(counts.values<int32_t>(), ::testing::ElementsAre(0, 1, 5, -3));
  for (const Array& pixels :
       {Array::from<int32_t>({4}, {1, 200, 128, 7}), Array::from<uint8_t>({4}, {1, 200, 128, 7}),
        Array::from<int64_t>({4}, {1, 200, 128, 7})})
    EXPECT_THAT(evaluate_op(above, {pixels}).values<bool>(), ::testing::ElementsAre(false, true, true, false))
        << to_string(pixels.type());
}

TEST(ElementwiseFusion, MergesATreeWithBroadcastOperandsAndMasks) {
  const test::Build build = [](std::span<const Tensor> in) {
    return select(greater(in[0] * in[1], in[2]), tanh(in[0]) + in[1], square(in[0]) / 2);
  };
  const auto names = fused_ops([&](std::span<const Tensor> in) { return std::vector{build(in)}; },
                               {kMatrix, {DType::kFloat32, {5}}, {DType::kFloat32, {}}});
  EXPECT_THAT(names, ::testing::ElementsAre("elementwise"));
  const std::vector<Array> inputs = {random_array({3, 5}, 1), random_array({5}, 2), random_array({}, 3)};
  evaluate_op(build, inputs);  // the same with and without rules
}

TEST(ElementwiseFusion, KeepsWhatHasAnotherUser) {
  const auto names = fused_ops(
      [](std::span<const Tensor> in) {
        const Tensor shared = exp(in[0]);
        return std::vector{relu(shared), reduce_sum(shared)};
      },
      {kMatrix});
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("exp", "relu", "reduce_sum"));
}

TEST(ElementwiseFusion, KeepsWhatIsFetched) {
  const auto names = fused_ops(
      [](std::span<const Tensor> in) {
        const Tensor hidden = exp(in[0]);
        return std::vector{relu(hidden), hidden};
      },
      {kMatrix});
  EXPECT_THAT(names, ::testing::ElementsAre("exp", "relu"));
}

TEST(ElementwiseFusion, MergesAProducerThatIsReadTwiceByOneNode) {
  const test::Build build = [](std::span<const Tensor> in) {
    const Tensor y = exp(in[0]);
    return y * y;
  };
  EXPECT_THAT(fused_ops([&](std::span<const Tensor> in) { return std::vector{build(in)}; }, {kMatrix}),
              ::testing::ElementsAre("elementwise"));
  evaluate_op(build, {random_array({3, 5}, 4)});
}

TEST(ElementwiseFusion, KeepsProducersOfASmallerShape) {
  const auto names = fused_ops([](std::span<const Tensor> in) { return std::vector{in[0] + exp(in[1])}; },
                               {kMatrix, {DType::kFloat32, {5}}});
  EXPECT_THAT(names, ::testing::ElementsAre("exp", "add"));
}

TEST(ElementwiseFusion, KeepsIntegerArithmetic) {
  const test::Build build = [](std::span<const Tensor> in) { return cast(in[0] + 1, DType::kFloat32) * 2; };
  const auto names =
      fused_ops([&](std::span<const Tensor> in) { return std::vector{build(in)}; }, {{DType::kInt32, {4}}});
  EXPECT_THAT(names, ::testing::ElementsAre("add", "elementwise"));
  // 2^24 + 1 is an int32, not a float32: the sum must be made before the cast.
  const Array y = evaluate_op(build, {Array::from<int32_t>({1}, {(1 << 24) + 1})});
  EXPECT_EQ(y.values<float>()[0], 2.0f * ((1 << 24) + 2));
}

// Longer than a program may be: it is cut, and the result stays right.
TEST(ElementwiseFusion, CutsLongChains) {
  const test::Build build = [](std::span<const Tensor> in) {
    Tensor y = in[0];
    for (int i = 0; i < 100; ++i) y = y + 1;
    return y;
  };
  const auto names = fused_ops([&](std::span<const Tensor> in) { return std::vector{build(in)}; }, {kMatrix});
  EXPECT_GT(names.size(), 1u);
  EXPECT_LT(names.size(), 12u);
  const Array y = evaluate_op(build, {Array::from<float>({1}, {0.5f})});
  EXPECT_EQ(y.values<float>()[0], 100.5f);
}

TEST(ElementwiseFusion, CutsWideTrees) {
  const test::Build build = [](std::span<const Tensor> in) {
    Tensor y = in[0];
    for (const Tensor& x : in.subspan(1)) y = y + x * x;
    return y;
  };
  std::vector<Array> inputs;
  float expected = 1;
  for (int i = 0; i < 25; ++i) {
    inputs.push_back(Array::from<float>({2}, {static_cast<float>(i + 1), 1}));
    if (i > 0) expected += static_cast<float>((i + 1) * (i + 1));
  }
  const Array y = evaluate_op(build, inputs);
  EXPECT_THAT(y.values<float>(), ::testing::ElementsAre(expected, 25));
}

TEST(ElementwiseFusion, LeavesNumbersToConstantFolding) {
  const Array y = evaluate_op(
      [](std::span<const Tensor> in) {
        const Tensor two = constant(Array::scalar(2.0f));
        return in[0] + square(two) * 3;
      },
      {Array::scalar(1.0f)});
  EXPECT_EQ(y.item(), 13);
}

TEST(ElementwiseFusion, GradientsOfAFusedNetworkAgree) {
  test::check_gradients(
      [](std::span<const Tensor> in) {
        const Tensor hidden = tanh(in[0] * in[1] + in[2]);
        return reduce_mean(square(sigmoid(hidden * 2) - in[0]), {.axes = {1}});
      },
      {random_array({3, 4}, 5), random_array({4}, 6), random_array({3, 1}, 7)});
}

}  // namespace
}  // namespace mox
