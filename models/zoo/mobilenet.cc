#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/zoo/internal/networks.h"

namespace mox::zoo {
namespace {

Tensor relu6(const Tensor& x, SourceLocation where) { return clip_by_value(x, 0, 6, where); }

// The multiple of 8 nearest to `channels`, but no less than 90 % of it, and at least 8: the rule of the
// reference implementation.
int64_t multiple_of_8(double channels) {
  const auto rounded = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return rounded < 0.9 * channels ? rounded + 8 : rounded;
}

Tensor depthwise(Network& network, const Tensor& x, int64_t stride) {
  const int64_t channels = x.shape()[1];
  return network.conv_batch_norm(x, channels, 3, "depthwise",
                                 {.stride = stride, .groups = channels, .activation = relu6});
}

Tensor inverted_residual(Network& network, const Tensor& x, int64_t expansion, int64_t out, int64_t stride) {
  const int64_t in = x.shape()[1];
  Tensor y = x;
  if (expansion != 1) y = network.conv_batch_norm(y, expansion * in, 1, "expand", {.activation = relu6});
  y = depthwise(network, y, stride);
  y = network.conv_batch_norm(y, out, 1, "project", {.activation = {}});
  return stride == 1 && in == out ? x + y : y;
}

}  // namespace

NetworkOutput mobilenet_v1(Network& network, const Tensor& images, double multiplier) {
  struct Block {
    int64_t stride, filters;
  };
  constexpr Block kBlocks[] = {{1, 64},  {2, 128}, {1, 128}, {2, 256}, {1, 256},  {2, 512}, {1, 512},
                               {1, 512}, {1, 512}, {1, 512}, {1, 512}, {2, 1024}, {1, 1024}};
  auto width = [&](int64_t filters) { return std::max<int64_t>(8, filters * multiplier); };
  Tensor x = network.end_point(
      "conv1", network.conv_batch_norm(images, width(32), 3, "conv1", {.stride = 2, .activation = relu6}));
  int number = 0;
  for (const auto& [stride, filters] : kBlocks) {
    const std::string name = fmt::format("block{}", ++number);
    const VarScope scope = var_scope(name);
    x = depthwise(network, x, stride);
    x = network.end_point(name,
                          network.conv_batch_norm(x, width(filters), 1, "pointwise", {.activation = relu6}));
  }
  return network.classify_global_mean(x, true);
}

NetworkOutput mobilenet_v2(Network& network, const Tensor& images, double multiplier) {
  struct Stage {
    int64_t expansion, filters, blocks, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  auto width = [&](int64_t filters) { return multiple_of_8(filters * multiplier); };
  Tensor x = network.end_point(
      "conv1", network.conv_batch_norm(images, width(32), 3, "conv1", {.stride = 2, .activation = relu6}));
  int number = 0;
  for (const auto& [expansion, filters, blocks, stride] : kStages)
    for (int64_t i = 0; i < blocks; ++i) {
      const std::string name = fmt::format("block{}", ++number);
      const VarScope scope = var_scope(name);
      x = network.end_point(name,
                            inverted_residual(network, x, expansion, width(filters), i == 0 ? stride : 1));
    }
  const int64_t last = multiple_of_8(1280 * std::max(1.0, multiplier));
  x = network.end_point("conv2", network.conv_batch_norm(x, last, 1, "conv2", {.activation = relu6}));
  return network.classify_global_mean(x, true);
}

}  // namespace mox::zoo
