#include "models/zoo/internal/networks.h"

namespace mox::zoo {

NetworkOutput alexnet_v2(Network& network, const Tensor& images) {
  const Pool2dOptions overlapping{.window = {3, 3}, .strides = {2, 2}};
  Tensor x = network.end_point(
      "conv1", network.conv(images, 64, 11, "conv1", {.stride = 4, .padding = Padding::kValid}));
  x = network.end_point("pool1", max_pool(x, overlapping));
  x = network.end_point("conv2", network.conv(x, 192, 5, "conv2"));
  x = network.end_point("pool2", max_pool(x, overlapping));
  x = network.end_point("conv3", network.conv(x, 384, 3, "conv3"));
  x = network.end_point("conv4", network.conv(x, 384, 3, "conv4"));
  x = network.end_point("conv5", network.conv(x, 256, 3, "conv5"));
  x = network.end_point("pool5", max_pool(x, overlapping));
  x = network.end_point("fc6", network.dense(flatten(x), 4096, "fc6", relu));
  x = network.end_point("fc7", network.dense(network.dropout(x), 4096, "fc7", relu));
  return network.classify(network.dropout(x));
}

}  // namespace mox::zoo
