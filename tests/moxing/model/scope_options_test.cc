// What var_scope says about the arithmetic inside of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "moxing/layers/layers.h"
#include "ops/fusion/default_rules.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/graph/rewrite.h"
#include "tests/moxing/small_run.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

using testing::HasSubstr;

class ForceDtype : public ::testing::Test {
 protected:
  void SetUp() override {
    if (bfloat16_support() == BFloat16Support::kNone) GTEST_SKIP() << "needs AVX-512, for bfloat16";
  }
  // The types that the products in scopes "low", "high", "low/high" and outside take, forward and backward.
  static std::map<std::string, std::vector<DType>> types_in(Precision precision) {
    Graph graph;
    const GraphScope scope(graph);
    Tensor x = graph.input(0, {DType::kFloat32, {8, 32}}, SourceLocation::current());
    const auto product = [&](const char* name) { x = tanh(matmul(x, get_variable(name, {32, 32}))); };
    product("outside");
    {
      const auto low = var_scope("low", {.force_dtype = DType::kBFloat16});
      product("w");
      const auto high = var_scope("high", {.force_dtype = DType::kFloat32});
      product("w");
    }
    {
      const auto high = var_scope("high", {.force_dtype = DType::kFloat32});
      product("w");
      const auto inside = var_scope("inside");
      product("w");
    }
    std::vector<Tensor> outputs = {reduce_sum(x)};
    for (const Tensor& gradient : gradients(outputs[0], get_collection("variables")))
      outputs.push_back(gradient);
    GraphRewriter rewriter(graph, outputs);
    for (const NamedRule& rule : default_rules({.precision = precision})) rewriter.apply(rule.rule);
    std::map<std::string, std::vector<DType>> types;
    for (const auto& node : rewriter.graph().nodes())
      if (node->op->name == "matmul") types[node->name].push_back(node->inputs[0].dtype());
    return types;
  }
  static std::map<DType, int> count(const std::map<std::string, std::vector<DType>>& types) {
    std::map<DType, int> counts;
    for (const auto& [name, found] : types)
      for (DType dtype : found) ++counts[dtype];
    return counts;
  }
};

TEST_F(ForceDtype, HoldsInsideOfTheScopeForwardAndBackward) {
  const auto in_float32 = types_in(Precision::kFloat32);
  EXPECT_EQ(in_float32.at("low/matmul"), std::vector{DType::kBFloat16});
  EXPECT_EQ(in_float32.at("low/high/matmul"), std::vector{DType::kFloat32});
  EXPECT_EQ(in_float32.at("matmul"), std::vector{DType::kFloat32});
  // Forward, for the weights, for the input; the first layer's input needs no gradient.
  EXPECT_EQ(count(in_float32)[DType::kBFloat16], 3);
  EXPECT_EQ(count(in_float32)[DType::kFloat32], 11);
  const auto in_bfloat16 = types_in(Precision::kBFloat16);
  EXPECT_EQ(in_bfloat16.at("high/matmul"), std::vector{DType::kFloat32});
  EXPECT_EQ(in_bfloat16.at("high/inside/matmul"), std::vector{DType::kFloat32});
  EXPECT_EQ(in_bfloat16.at("matmul"), std::vector{DType::kBFloat16});
  EXPECT_EQ(count(in_bfloat16)[DType::kBFloat16], 5);
  EXPECT_EQ(count(in_bfloat16)[DType::kFloat32], 9);
}

TEST(ScopeOptions, AScopeWithoutANameLeavesNamesAsTheyAre) {
  Graph graph;
  const GraphScope in_graph(graph);
  const auto outer = var_scope("outer");
  {
    const auto scope = var_scope({.reuse = Reuse::kAuto, .force_dtype = DType::kFloat32, .recompute = true});
    get_variable("w", {2});
    EXPECT_EQ(current_traits().compute_dtype, DType::kFloat32);
    EXPECT_NE(current_traits().recomputed_stretch, 0);
    get_variable("w", {2});  // kAuto
  }
  EXPECT_TRUE(graph.find_variable("outer/w").defined());
  EXPECT_EQ(current_traits().compute_dtype, std::nullopt);
  EXPECT_THROW(get_variable("w", {2}), InvalidArgument) << "reuse ends with the scope";
  EXPECT_THAT(message_of<InvalidArgument>([] { const auto s = var_scope({.force_dtype = DType::kInt32}); }),
              HasSubstr("var_scope(): force_dtype must be float32 or bfloat16, got int32"));
}

TEST(ScopeOptions, OtherTypesAreRefused) {
  Graph graph;
  const GraphScope scope(graph);
  EXPECT_THAT(
      message_of<InvalidArgument>([] { const auto s = var_scope("a", {.force_dtype = DType::kInt32}); }),
      HasSubstr("var_scope('a'): force_dtype must be float32 or bfloat16, got int32"));
}

Dataset wide_noise_images(ModeKeys) {
  Array images(DType::kFloat32, {24, 4, 20, 20}), labels(DType::kInt64, {24});
  RandomStream(5, 6).fill_uniform(images.values<float>(), 0, -1, 1);
  for (int64_t i = 0; i < 24; ++i) labels.values<int64_t>()[i] = i % 3;
  return Dataset::from_arrays({images, labels}).repeat();
}

ModelSpec units(const Inputs& in, ModeKeys mode, bool recompute) {
  auto [x, y] = in.take<2>();
  Tensor h = x;
  for (const char* name : {"unit_1", "unit_2", "unit_3"}) {
    const auto scope = var_scope(name, {.recompute = recompute});
    h = layers::conv2d(h, 32, {3, 3}, {.use_bias = false});
    h = layers::batch_norm(h, mode, {.activation = relu});
    h = layers::dropout(layers::conv2d(h, 32, {3, 3}, {.activation = relu}), 0.2f, mode);
  }
  const Tensor loss = reduce_mean(sparse_softmax_cross_entropy(layers::dense(flatten(h), 3), y));
  return {.loss = loss, .log_info = {{"loss", loss}}};
}

// Trains five steps and returns the digest_of_units of the checkpoint.
std::string digest_of_units(bool recompute, const std::vector<std::string>& flags) {
  const std::string log_dir = fresh_directory("scope_options");
  std::vector<std::string> arguments{"--threads=1", "--log_level=error", "--log_every_n_steps=0", "--log_dir",
                                     log_dir};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const ScopedConfiguration configuration(arguments);
  run_or_throw({.input_fn = wide_noise_images,
                .model_fn = [=](const Inputs& in, ModeKeys mode) { return units(in, mode, recompute); },
                .optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.05}),
                .batch_size = 12,
                .max_number_of_steps = 5});
  return checkpoint_digest(log_dir);
}

TEST(RecomputeScope, ATrainingEndsWithTheSameBits) {
  EXPECT_EQ(digest_of_units(true, {}), digest_of_units(false, {}));
  EXPECT_EQ(digest_of_units(true, {"--logical_replicas=2"}),
            digest_of_units(false, {"--logical_replicas=2"}));
  EXPECT_EQ(digest_of_units(true, {"--recompute=normalisation", "--loss_scale=256"}),
            digest_of_units(false, {}));
}

}  // namespace
}  // namespace mox
