#include <fmt/format.h>

#include "models/zoo/internal/networks.h"

namespace mox::zoo {
namespace {

Tensor unit(Network& network, const Tensor& x, int64_t filters, int64_t stride) {
  const int64_t out = 4 * filters;
  const Tensor activated = network.batch_norm(x, "preact", relu);
  const Tensor shortcut =
      x.shape()[1] == out ? x : network.conv_without_bias(activated, out, 1, "shortcut", {.stride = stride});
  Tensor y = network.conv_batch_norm(activated, filters, 1, "conv1");
  y = network.conv_batch_norm(y, filters, 3, "conv2", {.stride = stride});
  return network.conv_without_bias(y, out, 1, "conv3") + shortcut;
}

}  // namespace

NetworkOutput resnet_v2(Network& network, const Tensor& images, const std::array<int, 4>& units) {
  Tensor x = network.end_point("conv1", network.conv_without_bias(images, 64, 7, "conv1", {.stride = 2}));
  x = network.end_point("pool1",
                        max_pool(x, {.window = {3, 3}, .strides = {2, 2}, .padding = Padding::of(1)}));
  for (size_t block = 0; block < units.size(); ++block) {
    const VarScope scope = var_scope(fmt::format("block{}", block + 1));
    for (int i = 0; i < units[block]; ++i) {
      const VarScope unit_scope = var_scope(fmt::format("unit_{}", i + 1));
      x = unit(network, x, 64 << block, block > 0 && i == 0 ? 2 : 1);
    }
    network.end_point(fmt::format("block{}", block + 1), x);
  }
  return network.classify_global_mean(network.end_point("postnorm", network.batch_norm(x, "postnorm", relu)));
}

}  // namespace mox::zoo
