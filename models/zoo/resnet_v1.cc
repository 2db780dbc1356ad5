#include <fmt/format.h>

#include "models/zoo/internal/networks.h"

namespace mox::zoo {
namespace {

Tensor unit(Network& network, const Tensor& x, int64_t filters, int64_t stride, bool bottleneck) {
  const int64_t out = bottleneck ? 4 * filters : filters;
  const Tensor shortcut =
      stride == 1 && x.shape()[1] == out ? x : network.projection_shortcut(x, out, stride);
  Tensor y;
  if (bottleneck) {
    y = network.conv_batch_norm(x, filters, 1, "conv1");
    y = network.conv_batch_norm(y, filters, 3, "conv2", {.stride = stride});
    y = network.conv_batch_norm(y, out, 1, "conv3", {.activation = {}});
  } else {
    y = network.conv_batch_norm(x, filters, 3, "conv1", {.stride = stride});
    y = network.conv_batch_norm(y, out, 3, "conv2", {.activation = {}});
  }
  return relu(y + shortcut);
}

// The shortcut of the small networks where the image shrinks: every second pixel, and zeros for
// the new channels.
Tensor unit_cifar(Network& network, const Tensor& x, int64_t filters, int64_t stride) {
  Tensor shortcut = x;
  if (stride != 1) {
    const int64_t new_channels = filters - x.shape()[1];
    shortcut = pad(max_pool(x, {.window = {1, 1}, .strides = {stride, stride}}),
                   {{}, {.before = new_channels / 2, .after = new_channels - new_channels / 2}, {}, {}});
  }
  const Tensor y = network.conv_batch_norm(x, filters, 3, "conv1", {.stride = stride});
  return relu(network.conv_batch_norm(y, filters, 3, "conv2", {.activation = {}}) + shortcut);
}

}  // namespace

NetworkOutput resnet_v1(Network& network, const Tensor& images, const std::array<int, 4>& units,
                        bool bottleneck) {
  Tensor x = network.end_point("conv1", network.conv_batch_norm(images, 64, 7, "conv1", {.stride = 2}));
  x = network.end_point("pool1",
                        max_pool(x, {.window = {3, 3}, .strides = {2, 2}, .padding = Padding::of(1)}));
  for (size_t block = 0; block < units.size(); ++block) {
    const VarScope scope = var_scope(fmt::format("block{}", block + 1));
    for (int i = 0; i < units[block]; ++i) {
      const VarScope unit_scope = var_scope(fmt::format("unit_{}", i + 1));
      x = unit(network, x, 64 << block, block > 0 && i == 0 ? 2 : 1, bottleneck);
    }
    network.end_point(fmt::format("block{}", block + 1), x);
  }
  return network.classify_global_mean(x);
}

NetworkOutput resnet_v1_cifar(Network& network, const Tensor& images, int units) {
  Tensor x = network.end_point("conv1", network.conv_batch_norm(images, 16, 3, "conv1"));
  for (int block = 0; block < 3; ++block) {
    const VarScope scope = var_scope(fmt::format("block{}", block + 1));
    for (int i = 0; i < units; ++i) {
      const VarScope unit_scope = var_scope(fmt::format("unit_{}", i + 1));
      x = unit_cifar(network, x, 16 << block, block > 0 && i == 0 ? 2 : 1);
    }
    network.end_point(fmt::format("block{}", block + 1), x);
  }
  return network.classify_global_mean(x);
}

}  // namespace mox::zoo
