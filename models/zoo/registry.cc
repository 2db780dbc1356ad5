#include "models/zoo/internal/registry.h"

#include <fmt/format.h>

#include "models/zoo/internal/networks.h"

namespace mox::zoo {
namespace {

constexpr std::string_view kOneWeirdTrick = "Krizhevsky, arXiv 1404.5997";
constexpr std::string_view kVeryDeep = "Simonyan & Zisserman, arXiv 1409.1556";
constexpr std::string_view kResidual = "He et al., arXiv 1512.03385";
constexpr std::string_view kIdentity = "He et al., arXiv 1603.05027";
constexpr std::string_view kMobileNets = "Howard et al., arXiv 1704.04861";
constexpr std::string_view kInverted = "Sandler et al., arXiv 1801.04381";

using Build = NetworkOutput(Network&, const Tensor&);

constexpr NetworkEntry vgg_entry(std::string_view name, bool batch_norm, Build* build) {
  return {name, kVeryDeep, 224, 3, 1000, 0.5f, batch_norm, false, false, build};
}
constexpr NetworkEntry resnet_entry(std::string_view name, std::string_view paper, Build* build) {
  return {name, paper, 224, 3, 1000, {}, true, true, !name.starts_with("resnet_v2"), build};
}
constexpr NetworkEntry cifar_resnet_entry(std::string_view name, Build* build) {
  return {name, kResidual, 32, 3, 10, {}, true, true, false, build};
}
constexpr NetworkEntry mobilenet_entry(std::string_view name, std::string_view paper, float dropout,
                                       Build* build) {
  return {name, paper, 224, 3, 1000, dropout, true, true, false, build};
}

template <int A, int B, int C, int D, int E, bool kBatchNorm>
NetworkOutput build_vgg(Network& network, const Tensor& images) {
  return vgg(network, images, {A, B, C, D, E}, kBatchNorm);
}
template <int A, int B, int C, int D, bool kBottleneck>
NetworkOutput build_resnet_v1(Network& network, const Tensor& images) {
  return resnet_v1(network, images, {A, B, C, D}, kBottleneck);
}
template <int kUnits>
NetworkOutput build_resnet_cifar(Network& network, const Tensor& images) {
  return resnet_v1_cifar(network, images, kUnits);
}
template <int A, int B, int C, int D>
NetworkOutput build_resnet_v2(Network& network, const Tensor& images) {
  return resnet_v2(network, images, {A, B, C, D});
}
template <int kPercent>
NetworkOutput build_mobilenet_v1(Network& network, const Tensor& images) {
  return mobilenet_v1(network, images, kPercent / 100.0);
}
template <int kPercent>
NetworkOutput build_mobilenet_v2(Network& network, const Tensor& images) {
  return mobilenet_v2(network, images, kPercent / 100.0);
}

constexpr NetworkEntry kEntries[] = {
    {"lenet", "LeCun et al., Proc. IEEE 86 (1998); TensorFlow's MNIST tutorial", 28, 1, 10, 0.5f, false,
     false, false, lenet},
    {"cifarnet", "Krizhevsky's cuda-convnet; TensorFlow's CIFAR-10 tutorial", 32, 3, 10, 0.5f, false, false,
     false, cifarnet},
    {"alexnet_v2", kOneWeirdTrick, 224, 3, 1000, 0.5f, false, false, false, alexnet_v2},
    vgg_entry("vgg_a", false, build_vgg<1, 1, 2, 2, 2, false>),
    vgg_entry("vgg_a_bn", true, build_vgg<1, 1, 2, 2, 2, true>),
    vgg_entry("vgg_16", false, build_vgg<2, 2, 3, 3, 3, false>),
    vgg_entry("vgg_16_bn", true, build_vgg<2, 2, 3, 3, 3, true>),
    vgg_entry("vgg_19", false, build_vgg<2, 2, 4, 4, 4, false>),
    vgg_entry("vgg_19_bn", true, build_vgg<2, 2, 4, 4, 4, true>),
    resnet_entry("resnet_v1_18", kResidual, build_resnet_v1<2, 2, 2, 2, false>),
    cifar_resnet_entry("resnet_v1_20", build_resnet_cifar<3>),
    resnet_entry("resnet_v1_34", kResidual, build_resnet_v1<3, 4, 6, 3, false>),
    resnet_entry("resnet_v1_50", kResidual, build_resnet_v1<3, 4, 6, 3, true>),
    resnet_entry("resnet_v1_101", kResidual, build_resnet_v1<3, 4, 23, 3, true>),
    cifar_resnet_entry("resnet_v1_110", build_resnet_cifar<18>),
    resnet_entry("resnet_v1_152", kResidual, build_resnet_v1<3, 8, 36, 3, true>),
    resnet_entry("resnet_v1_200", kIdentity, build_resnet_v1<3, 24, 36, 3, true>),
    resnet_entry("resnet_v2_50", kIdentity, build_resnet_v2<3, 4, 6, 3>),
    resnet_entry("resnet_v2_101", kIdentity, build_resnet_v2<3, 4, 23, 3>),
    resnet_entry("resnet_v2_152", kIdentity, build_resnet_v2<3, 8, 36, 3>),
    resnet_entry("resnet_v2_200", kIdentity, build_resnet_v2<3, 24, 36, 3>),
    mobilenet_entry("mobilenet_v1", kMobileNets, 0.001f, build_mobilenet_v1<100>),
    mobilenet_entry("mobilenet_v1_075", kMobileNets, 0.001f, build_mobilenet_v1<75>),
    mobilenet_entry("mobilenet_v1_050", kMobileNets, 0.001f, build_mobilenet_v1<50>),
    mobilenet_entry("mobilenet_v1_025", kMobileNets, 0.001f, build_mobilenet_v1<25>),
    mobilenet_entry("mobilenet_v2", kInverted, 0.2f, build_mobilenet_v2<100>),
    mobilenet_entry("mobilenet_v2_140", kInverted, 0.2f, build_mobilenet_v2<140>),
    mobilenet_entry("mobilenet_v2_035", kInverted, 0.2f, build_mobilenet_v2<35>),
};

}  // namespace

std::span<const NetworkEntry> network_entries() { return kEntries; }

const NetworkEntry& network_entry(std::string_view name) {
  std::string known;
  for (const NetworkEntry& entry : kEntries) {
    if (entry.name == name) return entry;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.name);
  }
  throw InvalidArgument(fmt::format("there is no network '{}' in the zoo; there are: {}", name, known));
}

}  // namespace mox::zoo
