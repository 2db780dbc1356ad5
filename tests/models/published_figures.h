// What others say of the networks' sizes.
#pragma once

#include <string_view>

namespace mox {

// A figure counts as equal if it is within the rounding in which it was published.
struct PublishedFigure {
  std::string_view name;
  double parameters;
  double parameters_rounding;
  double multiply_adds;  // 0: none published
  double multiply_adds_rounding;
  std::string_view source;
  bool with_moving_averages = false;  // Keras counts all weights, trainable or not
};

inline constexpr std::string_view kTorchvision = "torchvision 0.14";
inline constexpr std::string_view kMobileNetTable = "TF-Slim's table of MobileNets";
inline constexpr std::string_view kTimm = "timm's table of results, which also counts multiply-adds outside of convolutions";

inline constexpr PublishedFigure kPublishedFigures[] = {
    {"lenet", 3274634, 0, 0, 0, "TensorFlow's MNIST tutorial, by hand"},
    {"cifarnet", 1756426, 0, 0, 0, "by hand: 4864 + 102464 + 1573248 + 73920 + 1930"},
    {"alexnet_v2", 50.3e6, 0.05e6, 0, 0, "by hand from the paper's layers"},
    {"vgg_a", 132863336, 0, 7.61e9, 0.005e9, kTorchvision},
    {"vgg_a_bn", 132868840, 0, 7.61e9, 0.005e9, kTorchvision},
    {"vgg_16", 138357544, 0, 15.47e9, 0.005e9, kTorchvision},
    {"vgg_16_bn", 138365992, 0, 15.47e9, 0.005e9, kTorchvision},
    {"vgg_19", 143667240, 0, 19.63e9, 0.005e9, kTorchvision},
    {"vgg_19_bn", 143678248, 0, 19.63e9, 0.005e9, kTorchvision},
    {"resnet_v1_18", 11689512, 0, 1.814e9, 0.0005e9, kTorchvision},
    {"resnet_v1_20", 0.27e6, 0.005e6, 40.55e6, 0.005e6, "He et al. 2015, table 6; Idelbayev's implementation"},
    {"resnet_v1_34", 21797672, 0, 3.664e9, 0.0005e9, kTorchvision},
    {"resnet_v1_50", 25557032, 0, 4.089e9, 0.0005e9, kTorchvision},
    {"resnet_v1_101", 44549160, 0, 7.801e9, 0.0005e9, kTorchvision},
    {"resnet_v1_110", 1.7e6, 0.05e6, 253e6, 0.5e6, "He et al. 2015, table 6; Li et al. 2017, table 1"},
    {"resnet_v1_152", 60192808, 0, 11.514e9, 0.0005e9, kTorchvision},
    {"resnet_v1_200", 64.67e6, 0.005e6, 15.07e9, 0.1e9, kTimm},
    {"resnet_v2_50", 25.55e6, 0.005e6, 4.11e9, 0.05e9, kTimm},
    {"resnet_v2_101", 44.54e6, 0.005e6, 7.83e9, 0.05e9, kTimm},
    {"resnet_v2_152", 60.19e6, 0.005e6, 11.55e9, 0.05e9, kTimm},
    {"resnet_v2_200", 64.7e6, 0.05e6, 0, 0, "as resnet_v1_200, within the normalisations"},
    {"mobilenet_v1", 4253864, 0, 569e6, 0.5e6, "Keras; MobileNets, table 4", true},
    {"mobilenet_v1_075", 2601976, 0, 325e6, 0.5e6, "Keras; MobileNets, table 6", true},
    {"mobilenet_v1_050", 1342536, 0, 149e6, 0.5e6, "Keras; MobileNets, table 6", true},
    {"mobilenet_v1_025", 475544, 0, 41e6, 0.5e6, "Keras; MobileNets, table 6", true},
    {"mobilenet_v2", 3504872, 0, 300e6, 1e6, "torchvision 0.14; TF-Slim's table"},
    {"mobilenet_v2_140", 6.06e6, 0.06e6, 582e6, 1e6, kMobileNetTable},
    {"mobilenet_v2_035", 1.66e6, 0.02e6, 59e6, 0.5e6, kMobileNetTable},
};

}  // namespace mox
