#include "ops/fusion/internal/batch_norm_folding_rule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/arithmetic/arithmetic.h"
#include "ops/convolution/conv2d.h"
#include "ops/fusion/internal/bias_rule.h"
#include "ops/normalisation/normalisation.h"
#include "tests/support/evaluate.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;

// Image, filters, then five numbers a channel: scale, offset, mean, variance, bias.
std::vector<Array> inputs(int64_t size, int64_t groups = 1) {
  const Shape channels{12};
  return {random_array({2, 8, size, size}, 1),
          random_array({12, 8 / groups, 3, 3}, 2, -0.3f, 0.3f),
          random_array(channels, 3, 0.5f, 1.5f),
          random_array(channels, 4),
          random_array(channels, 5),
          random_array(channels, 6, 0.5f, 2.0f),
          random_array(channels, 7)};
}

Tensor normalise_by_averages(const Tensor& x, Inputs in) {
  return batch_norm_inference(x, in[2], in[3], in[4], in[5], {.epsilon = 0.1});
}

bool folds(const Build& build, const std::vector<Array>& arrays) {
  Graph graph;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < arrays.size(); ++i)
    tensors.push_back(graph.input(static_cast<int>(i), arrays[i].type(), SourceLocation::current()));
  GraphRewriter rewriter(graph, {build(tensors)});
  rewriter.apply(bias_rule().rule);
  rewriter.apply(batch_norm_folding_rule().rule);
  return std::ranges::none_of(rewriter.graph().nodes(),
                              [](auto& node) { return node->op->name == "batch_norm_inference"; });
}

TEST(BatchNormFolding, KeepsValues) {
  const Build plain = [](Inputs in) { return normalise_by_averages(conv2d(in[0], in[1]), in); };
  const Build with_bias = [](Inputs in) {
    return normalise_by_averages(bias_add(conv2d(in[0], in[1]), in[6]), in);
  };
  const Build grouped = [](Inputs in) {
    return normalise_by_averages(conv2d(in[0], in[1], {.groups = 4}), in);
  };
  EXPECT_TRUE(folds(plain, inputs(12)));
  EXPECT_TRUE(folds(with_bias, inputs(12)));
  EXPECT_TRUE(folds(grouped, inputs(12, 4)));
  // Expects the same with and without the rules.
  evaluate_op(plain, inputs(12));
  evaluate_op(with_bias, inputs(12));
  evaluate_op(grouped, inputs(12, 4));
}

TEST(BatchNormFolding, LeavesWhatIsUsedTwiceOrTooSmall) {
  // More filters than pixels.
  EXPECT_FALSE(folds([](Inputs in) { return normalise_by_averages(conv2d(in[0], in[1]), in); }, inputs(4)));
  EXPECT_FALSE(folds(
      [](Inputs in) {
        const Tensor x = conv2d(in[0], in[1]);
        return mul(normalise_by_averages(x, in), x);
      },
      inputs(12)));
  EXPECT_FALSE(folds([](Inputs in) { return batch_norm_inference(in[0], in[1], in[2], in[3], in[4]); },
                     {random_array({2, 3, 4, 4}, 1), random_array({3}, 2), random_array({3}, 3),
                      random_array({3}, 4), random_array({3}, 5, 0.5f, 1.0f)}));
}

}  // namespace
}  // namespace mox::test
