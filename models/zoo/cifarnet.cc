#include <algorithm>
#include <cstdlib>

#include "models/zoo/internal/networks.h"

namespace mox::zoo {
namespace {

// x / (1 + 0.001 / 9 * s)^0.75, s: the sum of x^2 over the nine channels around (Krizhevsky et al., "ImageNet
// classification with deep convolutional neural networks", NIPS 2012, section 3.3). The sum is a product with
// a band matrix, which oneDNN does as a 1x1 convolution.
Tensor local_response_normalization(const Tensor& x) {
  constexpr int64_t kRadius = 4;
  const int64_t channels = x.shape()[1];
  Array band(DType::kFloat32, Shape{channels, channels, 1, 1});
  const auto weights = band.values<float>();
  for (int64_t to = 0; to < channels; ++to)
    for (int64_t from = std::max<int64_t>(0, to - kRadius); from <= std::min(channels - 1, to + kRadius);
         ++from)
      weights[to * channels + from] = 0.001f / 9;
  return x * pow(conv2d(square(x), constant(band)) + 1, -0.75);
}

}  // namespace

NetworkOutput cifarnet(Network& network, const Tensor& images) {
  Tensor x = network.end_point("conv1", network.conv(images, 64, 5, "conv1"));
  x = network.end_point("pool1", max_pool(x));
  x = network.end_point("norm1", local_response_normalization(x));
  x = network.end_point("conv2", network.conv(x, 64, 5, "conv2"));
  x = network.end_point("norm2", local_response_normalization(x));
  x = network.end_point("pool2", max_pool(x));
  x = network.end_point("fc3", network.dense(flatten(x), 384, "fc3", relu));
  x = network.end_point("fc4", network.dense(network.dropout(x), 192, "fc4", relu));
  return network.classify(x);
}

}  // namespace mox::zoo
