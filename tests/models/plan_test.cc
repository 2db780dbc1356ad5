// What a compiled network still converts between layouts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "models/zoo/zoo.h"
#include "moxing/model/variable_store.h"
#include "ops/fusion/default_rules.h"
#include "ops/processor/processor.h"
#include "runtime/exec/plan_instance.h"

namespace mox {
namespace {

struct Training {
  std::vector<KernelTime> steps;
  PlanStatistics statistics;
  std::string text;
};

Training compile_training(const std::string& network, Precision precision, const NetworkOptions& options = {},
                          int64_t size = 64, DType image_dtype = DType::kFloat32) {
  const Team team(1);
  team.enter();
  Graph graph;
  const GraphScope scope(graph);
  const Tensor images = graph.input(0, {image_dtype, {2, get_model_meta(network).channels, size, size}},
                                    SourceLocation::current()),
               labels = graph.input(1, {DType::kInt64, {2}}, SourceLocation::current());
  const Tensor logits = get_model_fn(network, options)(images, ModeKeys::TRAIN).logits;
  const Tensor loss = reduce_mean(sparse_softmax_cross_entropy(logits, labels));
  PlanRequest request{.fetches = {loss}, .gradients = {}, .after_step_values = graph.after_step_values()};
  const std::vector<Tensor> targets = get_collection("trainable_variables"), found = gradients(loss, targets);
  for (size_t i = 0; i < targets.size(); ++i) request.gradients.push_back({targets[i], found[i]});
  VariableStore store(0);
  store.declare(graph);
  const auto plan = Plan::compile(
      graph, request, {.rules = default_rules({.precision = precision}), .convert = convert_layout}, team);
  return {PlanInstance(plan, team, [&](std::string_view name) { return store.get(name); }).profile(),
          plan->statistics(), plan->describe()};
}

std::vector<KernelTime> training_steps(const std::string& network, Precision precision, int64_t size = 64) {
  return compile_training(network, precision, {}, size).steps;
}

TEST(ZooPlan, ResNetsConvertWeightsAndTheirGradientsAlone) {
  std::vector<std::pair<std::string, int64_t>> cases = {
      {"resnet_v1_50", 224}, {"resnet_v1_20", 64}, {"resnet_v1_20", 32}};
  // There the last images of resnet_v1_50 are 2 x 2: oneDNN's AVX2 convolutions want images smaller than
  // their window plain.
  if (processor().lanes >= 16) cases.emplace_back("resnet_v1_50", 64);
  for (const auto& [network, size] : cases) {
    SCOPED_TRACE(fmt::format("{} {}", network, size));
    std::map<std::string, int> conversions;
    for (const KernelTime& step : training_steps(network, Precision::kFloat32, size))
      if (step.is_conversion) ++conversions[step.name];
    EXPECT_FALSE(conversions.empty());
    for (const auto& [name, count] : conversions) {
      const bool is_weight = name.ends_with("/kernel"),
                 is_gradient = name.find("conv2d_filter_gradient") != std::string::npos;
      EXPECT_TRUE(is_weight || is_gradient || name == "input") << name;
      EXPECT_LE(count, is_weight ? 2 : 1) << name;  // a weight for the forward and for the backward pass
    }
  }
}

// In blocks of channels or with channels last, as the processor's convolutions want them. Only images
// have a batch.
TEST(ZooPlan, ImagesAreNotConvertedInBFloat16) {
  if (bfloat16_support() == BFloat16Support::kNone) GTEST_SKIP() << "needs AVX-512, for bfloat16";
  std::vector<std::string> networks = {"resnet_v1_50", "resnet_v1_20", "resnet_v2_50"};
  // Elsewhere oneDNN's depthwise convolutions want its smallest images plain.
  if (processor().tiles) networks.push_back("mobilenet_v2");
  for (const std::string& network : networks) {
    SCOPED_TRACE(network);
    std::istringstream lines(compile_training(network, Precision::kBFloat16).text);
    int conversions = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" convert ") == std::string::npos) continue;
      ++conversions;
      EXPECT_TRUE(line.find("[2, ") == std::string::npos || line.find("[2, 3, 64, 64]") != std::string::npos)
          << line;
    }
    EXPECT_GT(conversions, 0);
  }
}

TEST(ZooPlan, NothingBetweenTheConvolutionsOfAResNetIsLeftAlone) {
  std::map<std::string, int> count;
  for (const KernelTime& step : training_steps("resnet_v1_50", Precision::kFloat32)) ++count[step.op];
  EXPECT_EQ(count["batch_norm_activation"] + count["batch_norm_activation_of_moments"], 48);
  EXPECT_EQ(count["batch_norm_activation_gradient"] + count["batch_norm_gradient_of_sums"], 48);
  // Those of the four shortcuts, and the first one, whose relu comes after the pooling, where there
  // are fewer pixels.
  EXPECT_EQ(count["batch_norm"], 5);
  EXPECT_EQ(count["batch_norm_gradient"], 5);
  EXPECT_EQ(count["relu"], 1);
}

TEST(ZooPlan, NorBetweenThoseOfASmallResNet) {
  std::map<std::string, int> count;
  for (const KernelTime& step : training_steps("resnet_v1_20", Precision::kFloat32)) ++count[step.op];
  // Those beside large convolutions take their moments or sums, or are part of them, where the processor has
  // instructions for these.
  EXPECT_EQ(count["batch_norm_activation"] + count["batch_norm_activation_of_moments"] +
                count["conv2d_of_normalised"],
            19);
  EXPECT_EQ(count["batch_norm_activation_gradient"] + count["batch_norm_gradient_of_sums"] +
                count["conv2d_normalised_gradients"],
            19);
  for (const char* fused : {"batch_norm_activation_of_moments", "batch_norm_gradient_of_sums",
                            "conv2d_of_normalised", "conv2d_normalised_gradients"})
    EXPECT_GT(count[fused], 0) << fused;
  for (const char* unfused : {"batch_norm", "batch_norm_gradient", "add", "relu"})
    EXPECT_EQ(count[unfused], 0) << unfused;
}

TEST(ZooPlan, DepthwiseConvolutionsOfAMobileNetAreOneNodeWithTheNormalisationBeforeThem) {
  for (const auto& [network, convolutions] : {std::pair{"mobilenet_v1_025", 13}, {"mobilenet_v2", 17}}) {
    SCOPED_TRACE(network);
    std::map<std::string, int> count;
    for (const KernelTime& step : training_steps(network, Precision::kFloat32)) ++count[step.op];
    const int fused = processor().lanes == 8 ? convolutions : 0;
    EXPECT_EQ(count["depthwise_of_normalised"], fused);
    EXPECT_EQ(count["depthwise_normalised_gradients"], fused);
  }
}

TEST(ZooPlan, ProjectionShortcutsCanBeComputedAgain) {
  const Training kept = compile_training("resnet_v1_18", Precision::kFloat32, {}, 224),
                 again = compile_training("resnet_v1_18", Precision::kFloat32, {.recompute_shortcuts = true},
                                          224);
  const auto convolutions = [](const Training& of) {
    return std::ranges::count(of.steps, std::string("conv2d"), &KernelTime::op);
  };
  EXPECT_EQ(convolutions(again), convolutions(kept) + 3);
  EXPECT_LT(again.statistics.live_bytes, kept.statistics.live_bytes);
}

// The lines of the plan that cast the batch of images.
std::vector<std::string> image_casts(const std::string& network, Precision precision, DType image_dtype) {
  const ModelMeta meta = get_model_meta(network);
  const int64_t size = meta.takes_any_image_size ? 32 : meta.image_size;
  const std::string plan = compile_training(network, precision, {}, size, image_dtype).text;
  const std::string image = fmt::format("[2, {}, {}, {}]", meta.channels, size, size);
  std::vector<std::string> found;
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line);)
    if (line.find(" cast ") != std::string::npos && line.find(image) != std::string::npos)
      found.push_back(line);
  return found;
}

TEST(ZooPlan, TakesTheBatchInItsPrecisionWithoutACast) {
  for (const char* network : {"lenet", "cifarnet", "resnet_v1_20", "resnet_v1_18", "mobilenet_v1_025"}) {
    SCOPED_TRACE(network);
    EXPECT_TRUE(image_casts(network, Precision::kFloat32, DType::kFloat32).empty());
    EXPECT_EQ(image_casts(network, Precision::kFloat32, DType::kBFloat16).size(), 1u);
    if (bfloat16_support() == BFloat16Support::kNone) continue;
    EXPECT_EQ(image_casts(network, Precision::kBFloat16, DType::kFloat32).size(), 1u);
    EXPECT_TRUE(image_casts(network, Precision::kBFloat16, DType::kBFloat16).empty());
  }
}

}  // namespace
}  // namespace mox
