#include "models/zoo/internal/networks.h"

namespace mox::zoo {

NetworkOutput lenet(Network& network, const Tensor& images) {
  Tensor x = network.end_point("conv1", network.conv(images, 32, 5, "conv1"));
  x = network.end_point("pool1", max_pool(x));
  x = network.end_point("conv2", network.conv(x, 64, 5, "conv2"));
  x = network.end_point("pool2", max_pool(x));
  x = network.end_point("fc3", network.dense(flatten(x), 1024, "fc3", relu));
  return network.classify(network.dropout(x));
}

}  // namespace mox::zoo
