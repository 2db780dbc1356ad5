#include "ops/fusion/internal/bias_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/convolution/conv2d.h"
#include "ops/gradients.h"
#include "ops/matmul/matmul.h"
#include "ops/normalisation/normalisation.h"
#include "ops/reduction/reduction.h"
#include "tests/ops/kernel_testing.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;

// The ops that remain after the rule, inputs aside.
std::vector<std::string> ops_after_fusion(const BuildMany& build, const std::vector<Array>& inputs) {
  Graph graph;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors.push_back(graph.input(static_cast<int>(i), inputs[i].type(), SourceLocation::current()));
  GraphRewriter rewriter(graph, build(tensors));
  rewriter.apply(bias_rule().rule);
  std::vector<std::string> names;
  for (const auto& node : rewriter.graph().nodes())
    if (node->op->kind == Op::Kind::kCompute) names.emplace_back(node->op->name);
  return names;
}

using Names = std::vector<std::string>;

// The product is computed in the precision of its scope, wherever the bias is added.
TEST(BiasRule, KeepsTheScopeOfTheProduct) {
  Graph graph;
  const auto input = [&](int index, const Shape& shape) {
    return graph.input(index, {DType::kFloat32, shape}, SourceLocation::current());
  };
  const Tensor x = input(0, {32, 64}), w = input(1, {64, 64}), bias = input(2, {64});
  Tensor product;
  {
    NodeTraits traits;
    traits.compute_dtype = DType::kFloat32;
    const TraitsScope scope(traits);
    product = matmul(x, w);
  }
  GraphRewriter rewriter(graph, {product + bias});
  rewriter.apply(bias_rule().rule);
  int found = 0;
  for (const auto& node : rewriter.graph().nodes())
    if (node->op->name == std::string("matmul_bias")) {
      ++found;
      EXPECT_EQ(node->traits.compute_dtype, DType::kFloat32);
    }
  EXPECT_EQ(found, 1);
}

struct BiasCase {
  const char* name;
  Build build;
  std::vector<Array> inputs;
  Names expected;
};

std::vector<BiasCase> bias_cases() {
  const Array image = random_array({2, 3, 6, 6}, 1), filter = random_array({20, 3, 3, 3}, 2),
              channels = random_array({20}, 3);
  const Array rows = random_array({5, 33}, 4), narrow = random_array({33, 10}, 5),
              wide = random_array({33, 40}, 6), ten = random_array({10}, 7), forty = random_array({40}, 8);
  const std::vector<Array> convolution = {image, filter, channels};
  return {
      {"conv_bias",
       [](Inputs in) { return bias_add(conv2d(in[0], in[1]), in[2]); },
       convolution,
       {"conv2d_bias"}},
      {"conv_bias_relu",
       [](Inputs in) { return relu(bias_add(conv2d(in[0], in[1]), in[2])); },
       convolution,
       {"conv2d_bias", "relu"}},
      {"matmul_bias",
       [](Inputs in) { return bias_add(matmul(in[0], in[1]), in[2]); },
       {rows, wide, forty},
       {"matmul_bias"}},
      {"matmul_relu",
       [](Inputs in) { return relu(bias_add(matmul(in[0], in[1]), in[2])); },
       {rows, wide, forty},
       {"matmul_bias", "relu"}},
      {"narrow_relu",
       [](Inputs in) { return relu(bias_add(matmul(in[0], in[1]), in[2])); },
       {rows, narrow, ten},
       {"matmul_bias", "relu"}},
      {"plus",
       [](Inputs in) { return add(matmul(in[0], in[1]), in[2]); },
       {rows, narrow, ten},
       {"matmul_bias"}},
      {"plus_on_the_left",
       [](Inputs in) { return add(in[2], matmul(in[0], in[1])); },
       {rows, narrow, ten},
       {"matmul_bias"}},
      {"sum_used_twice",
       [](Inputs in) {
         const Tensor product = matmul(in[0], in[1]);
         return mul(bias_add(product, in[2]), product);
       },
       {rows, narrow, ten},
       {"matmul", "bias_add", "mul"}},
      {"before_relu_used_twice",
       [](Inputs in) {
         const Tensor sum = bias_add(matmul(in[0], in[1]), in[2]);
         return mul(relu(sum), sum);
       },
       {rows, narrow, ten},
       {"matmul_bias", "relu", "mul"}},
      {"no_bias",
       [](Inputs in) { return add(matmul(in[0], in[1]), in[2]); },
       {rows, narrow, random_array({5, 1}, 9)},
       {"matmul", "add"}},
      {"sum_of_nothing",
       [](Inputs in) { return bias_add(matmul(in[0], in[1]), in[2]); },
       {Array(DType::kFloat32, {5, 0}), Array(DType::kFloat32, {0, 10}), ten},
       {"matmul", "bias_add"}},
  };
}

TEST(BiasFusion, FusesWhatNothingElseUses) {
  for (const BiasCase& c : bias_cases()) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(ops_after_fusion([&](Inputs in) { return std::vector<Tensor>{c.build(in)}; }, c.inputs),
              c.expected);
  }
}

TEST(BiasFusion, KeepsValuesAndGradients) {
  for (const BiasCase& c : bias_cases()) {
    SCOPED_TRACE(c.name);
    auto with_gradients = [&](Inputs in) {
      const Tensor y = c.build(in);
      std::vector<Tensor> results = {y};
      for (const Tensor& gradient : gradients(reduce_sum(mul(y, y)), in)) results.push_back(gradient);
      return results;
    };
    evaluate_ops(with_gradients, c.inputs);  // expects the same with and without rules
  }
}

TEST(BiasFusion, KeepsNaN) {
  Array rows = random_array({5, 33}, 4), image = random_array({1, 3, 6, 6}, 1);
  rows.values<float>()[0] = image.values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t columns : {10, 40}) {
    const Array y = evaluate_op([](Inputs in) { return relu(bias_add(matmul(in[0], in[1]), in[2])); },
                                {rows, random_array({33, columns}, 5), random_array({columns}, 6)});
    EXPECT_TRUE(std::isnan(y.values<float>()[0])) << columns << " columns";
  }
  const Array y = evaluate_op([](Inputs in) { return relu(bias_add(conv2d(in[0], in[1]), in[2])); },
                              {image, random_array({20, 3, 3, 3}, 2), random_array({20}, 3)});
  EXPECT_TRUE(std::isnan(y.values<float>()[0]));
}

}  // namespace
}  // namespace mox::test
