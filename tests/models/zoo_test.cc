// The networks of the zoo: sizes against published figures, options, end points, errors.
#include "models/zoo/zoo.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "runtime/graph/graph.h"
#include "tests/models/published_figures.h"

namespace mox {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

NetworkOutput build(std::string_view name, const Shape& images, const NetworkOptions& options = {},
                    ModeKeys mode = ModeKeys::TRAIN) {
  Graph& graph = current_graph("build");
  return get_model_fn(name, options)(graph.input(0, {DType::kFloat32, images}, SourceLocation::current()),
                                     mode);
}

TEST(Zoo, ParametersAreThePublishedOnes) {
  std::set<std::string_view> names;
  for (const PublishedFigure& figure : kPublishedFigures) {
    names.insert(figure.name);
    const ModelMeta meta = get_model_meta(figure.name);
    const int64_t counted = counted_parameters(meta, figure.counted);
    EXPECT_LE(std::abs(static_cast<double>(counted) - figure.parameters), figure.parameters_rounding)
        << figure.name << " has " << counted << ", " << figure.source << " says " << figure.parameters;
    if (figure.multiply_adds > 0) {
      EXPECT_LE(std::abs(static_cast<double>(meta.multiply_adds) - figure.multiply_adds),
                figure.multiply_adds_rounding)
          << figure.name << " has " << meta.multiply_adds << ", " << figure.source << " says "
          << figure.multiply_adds;
    }
  }
  for (const std::string& name : model_names())
    EXPECT_TRUE(names.contains(name)) << name << " has no published figure";
}

TEST(Zoo, CifarnetHasTheTutorialsParametersOnItsCrops) {
  Graph graph;
  const GraphScope scope(graph);
  build("cifarnet", {1, 3, 24, 24}, {.image_size = 24});
  int64_t parameters = 0;
  for (const Tensor& variable : graph.variables()) parameters += variable.shape().elements();
  EXPECT_EQ(parameters, 1068298);  // tensorflow.org/versions/r1.12/tutorials/images/deep_cnn
}

TEST(Zoo, EveryNetworkGivesLogitsAndEndPointsInEveryMode) {
  for (const std::string& name : model_names())
    for (const ModeKeys mode : {ModeKeys::TRAIN, ModeKeys::EVAL, ModeKeys::PREDICT}) {
      Graph graph;
      const GraphScope scope(graph);
      const ModelMeta meta = get_model_meta(name);
      const NetworkOutput output =
          build(name, {2, meta.channels, meta.image_size, meta.image_size}, {.num_classes = 7}, mode);
      EXPECT_EQ(output.logits.shape(), (Shape{2, 7})) << name;
      EXPECT_EQ(output.end_point("logits"), output.logits) << name;
      EXPECT_EQ(output.end_point("predictions").shape(), (Shape{2, 7})) << name;
      EXPECT_EQ(output.end_points.front().first, "conv1") << name;
      for (const Tensor& variable : graph.variables())
        EXPECT_TRUE(is_in_scope(variable.name(), name)) << variable.name();
      EXPECT_EQ(graph.after_step_values().empty(), mode != ModeKeys::TRAIN || !meta.has_batch_norm) << name;
      EXPECT_TRUE(get_collection("regularization_losses").empty()) << name;
    }
}

TEST(Zoo, NetworksWithAGlobalMeanTakeAnySize) {
  for (const std::string& name : model_names()) {
    if (!get_model_meta(name).takes_any_image_size) continue;
    Graph graph;
    const GraphScope scope(graph);
    EXPECT_EQ(build(name, {2, 3, 96, 64}).logits.shape()[0], 2) << name;
  }
}

TEST(Zoo, ImageSizeMakesTheNetworkForAnotherSize) {
  Graph graph;
  const GraphScope scope(graph);
  build("vgg_16", {1, 3, 64, 64}, {.image_size = 64});
  EXPECT_EQ(graph.find_variable("vgg_16/fc6/kernel").shape(), (Shape{512 * 2 * 2, 4096}));
}

TEST(Zoo, TheStrideOfABottleneckIsOnIts3x3Convolution) {
  Graph graph;
  const GraphScope scope(graph);
  build("resnet_v1_50", {1, 3, 64, 64});
  std::map<std::string, std::vector<int64_t>> strides;
  for (const auto& node : graph.nodes())
    if (node->op->name == "conv2d")
      strides[node->inputs[1].name()] = node->attributes.get<std::vector<int64_t>>("strides");
  EXPECT_EQ(strides.at("resnet_v1_50/block2/unit_1/conv1/kernel"), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(strides.at("resnet_v1_50/block2/unit_1/conv2/kernel"), (std::vector<int64_t>{2, 2}));
}

TEST(Zoo, ShortcutsThatAreNoProjectionsAreNotComputedAgain) {
  for (const char* name : {"resnet_v1_20", "resnet_v2_50", "vgg_a"})
    EXPECT_THAT([&] { get_model_fn(name, {.recompute_shortcuts = true}); },
                ThrowsMessage<InvalidArgument>(HasSubstr("recompute_shortcuts must be left out")));
}

TEST(Zoo, WeightDecayIsOneLossForEachKernel) {
  Graph graph;
  const GraphScope scope(graph);
  build("resnet_v1_20", {1, 3, 32, 32}, {.weight_decay = 1e-4f});
  EXPECT_EQ(get_collection("regularization_losses").size(), 20u);
}

TEST(Zoo, BatchNormOptionsReachEveryNormalisation) {
  Graph graph;
  const GraphScope scope(graph);
  build("mobilenet_v2", {1, 3, 64, 64}, {.batch_norm_epsilon = 0.25f});
  int found = 0;
  for (const auto& node : graph.nodes())
    if (node->op->name == "batch_norm") {
      ++found;
      EXPECT_EQ(node->attributes.get<double>("epsilon"), 0.25);
    }
  EXPECT_EQ(found, 52);
}

TEST(Zoo, DropoutCanBeChangedAndSwitchedOff) {
  auto count = [](const NetworkOptions& options, ModeKeys mode) {
    Graph graph;
    const GraphScope scope(graph);
    build("alexnet_v2", {1, 3, 224, 224}, options, mode);
    int found = 0;
    for (const auto& node : graph.nodes()) found += node->op->kind == Op::Kind::kRandom;
    return found;
  };
  EXPECT_EQ(count({}, ModeKeys::TRAIN), 2);
  EXPECT_EQ(count({.dropout = 0.0f}, ModeKeys::TRAIN), 0);
  EXPECT_EQ(count({}, ModeKeys::EVAL), 0);
}

TEST(Zoo, MistakesAreExplained) {
  auto message = [](auto call, const std::string& text) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(HasSubstr(text)));
  };
  message([] { get_model_fn("resnet50"); }, "there is no network 'resnet50' in the zoo; there are: lenet, ");
  message([] { get_model_meta(""); }, "there is no network ''");
  message([] { get_model_fn("lenet", {.num_classes = -1}); }, "lenet: num_classes must be >= 1");
  message([] { get_model_fn("lenet", {.image_size = 0}); }, "image_size must be >= 1");
  message([] { get_model_fn("lenet", {.weight_decay = -1}); }, "weight_decay must be >= 0");
  message([] { get_model_fn("lenet", {.weight_decay = NAN}); }, "weight_decay must be >= 0");
  message([] { get_model_fn("vgg_16", {.batch_norm_epsilon = 1e-3f}); }, "it has no batch normalisation");
  message([] { get_model_fn("vgg_16_bn", {.batch_norm_epsilon = 0.0f}); }, "batch_norm_epsilon must be > 0");
  message([] { get_model_fn("vgg_16_bn", {.batch_norm_momentum = 1.5f}); },
          "batch_norm_momentum must be in [0, 1]");
  message([] { get_model_fn("resnet_v1_50", {.dropout = 0.5f}); }, "it has no dropout");
  message([] { get_model_fn("lenet", {.dropout = 1.0f}); }, "dropout must be in [0, 1)");
  Graph graph;
  const GraphScope scope(graph);
  message(
      [] {
        build("vgg_16", {1, 3, 256, 256});
      },
      "vgg_16: expected float32 or bfloat16 images [batch, channels, 224, 224]; given input: float32[1, 3, "
      "256, 256]; the option image_size");
  message(
      [&] {
        get_model_fn("resnet_v1_18")(graph.input(1, {DType::kUInt8, {1, 3, 64, 64}}, {}), ModeKeys::TRAIN);
      },
      "expected float32 or bfloat16 images [batch, channels, height, width]");
  message([] { get_model_fn("resnet_v1_18")({}, ModeKeys::TRAIN); }, "expected float32 or bfloat16 images");
  Graph another;
  const GraphScope another_scope(another);
  EXPECT_THAT(
      [] {
        build("lenet", {1, 1, 28, 28}).end_point("fc9");
      },
      ThrowsMessage<NotFound>(HasSubstr("no end point 'fc9'; it has: conv1, pool1, ")));
}

}  // namespace
}  // namespace mox
