#include <fmt/format.h>

#include <algorithm>

#include "models/zoo/internal/networks.h"

namespace mox::zoo {

NetworkOutput vgg(Network& network, const Tensor& images, const std::array<int, 5>& convolutions,
                  bool batch_norm) {
  Tensor x = images;
  for (size_t stage = 0; stage < convolutions.size(); ++stage) {
    const int64_t filters = std::min<int64_t>(64 << stage, 512);
    for (int i = 1; i <= convolutions[stage]; ++i) {
      const std::string name = fmt::format("conv{}/conv{}_{}", stage + 1, stage + 1, i);
      // The bias before a normalisation has no effect; it is there because torchvision's networks have it.
      x = batch_norm ? network.batch_norm(network.conv(x, filters, 3, name, {.activation = {}}),
                                          name + "/batch_norm", relu)
                     : network.conv(x, filters, 3, name);
    }
    network.end_point(fmt::format("conv{}", stage + 1), x);
    x = network.end_point(fmt::format("pool{}", stage + 1), max_pool(x));
  }
  x = network.end_point("fc6", network.dense(flatten(x), 4096, "fc6", relu));
  x = network.end_point("fc7", network.dense(network.dropout(x), 4096, "fc7", relu));
  return network.classify(network.dropout(x));
}

}  // namespace mox::zoo
