// The families of networks. Each function adds the network to the current graph.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/zoo/internal/network.h"

namespace mox::zoo {

// LeCun et al., "Gradient-based learning applied to document recognition" (Proc. IEEE 1998), in the wider
// form of TensorFlow's tutorials and TF-Slim.
NetworkOutput lenet(Network& network, const Tensor& images);

// The network of TensorFlow's CIFAR-10 tutorial and TF-Slim, after Krizhevsky's cuda-convnet, with local
// response normalisation.
NetworkOutput cifarnet(Network& network, const Tensor& images);

// Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (arXiv 1404.5997).
NetworkOutput alexnet_v2(Network& network, const Tensor& images);

// Simonyan & Zisserman, "Very deep convolutional networks for large-scale image recognition" (ICLR 2015).
// `convolutions`: their number in each of the five stages.
NetworkOutput vgg(Network& network, const Tensor& images, const std::array<int, 5>& convolutions,
                  bool batch_norm);

// He et al., "Deep residual learning for image recognition" (CVPR 2016). `units`: their number in each of the
// four blocks. The stride of a bottleneck is on its 3x3 convolution.
NetworkOutput resnet_v1(Network& network, const Tensor& images, const std::array<int, 4>& units,
                        bool bottleneck);

// The networks for 32x32 images of the same paper, section 4.2: depth 6 * units + 2,
// shortcuts without parameters.
NetworkOutput resnet_v1_cifar(Network& network, const Tensor& images, int units);

// He et al., "Identity mappings in deep residual networks" (ECCV 2016): normalisation and ReLU
// before each convolution.
NetworkOutput resnet_v2(Network& network, const Tensor& images, const std::array<int, 4>& units);

// Howard et al., "MobileNets" (arXiv 1704.04861), every layer `multiplier` times as wide.
NetworkOutput mobilenet_v1(Network& network, const Tensor& images, double multiplier);

// Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks" (CVPR 2018), every layer
// `multiplier` times as wide, the last one only where that is wider.
NetworkOutput mobilenet_v2(Network& network, const Tensor& images, double multiplier);

}  // namespace mox::zoo
