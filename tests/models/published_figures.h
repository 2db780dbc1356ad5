// What others say of the networks' sizes.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/zoo/zoo.h"

namespace mox {

// What a published number of parameters counts.
enum class Counted {
  kTrainable,             // as ModelMeta::parameters
  kAll,                   // with the moving averages: Keras
  kWithoutNormalisation,  // without scales and offsets of normalisations: TF-Slim's table for MobileNet v2
};

// A figure counts as equal if it is within the rounding in which it was published.
struct PublishedFigure {
  std::string_view name;
  double parameters;
  double parameters_rounding;
  double multiply_adds;  // 0: none published
  double multiply_adds_rounding;
  std::string_view source;
  Counted counted = Counted::kTrainable;
};

// num_params and _ops of the weights in torchvision/models/vgg.py, resnet.py and
// mobilenetv2.py, release 0.15.
inline constexpr std::string_view kTorchvision = "torchvision 0.15";
// research/slim/nets/mobilenet/README.md in github.com/tensorflow/models.
inline constexpr std::string_view kSlimMobileNetV2 = "TF-Slim's table of MobileNet v2";
// Total params of tf.keras.applications.MobileNet; Howard et al., "MobileNets" (arXiv 1704.04861), table 6.
inline constexpr std::string_view kMobileNet = "Keras; Howard et al. 2017, table 6";
// param_count and infer_gmacs in results/benchmark-infer-amp-nchw-pt210-cu121-rtx3090.csv of
// github.com/huggingface/pytorch-image-models. Its gmacs are up to 0.6 % more than those of convolutions and
// dense layers.
inline constexpr std::string_view kTimm =
    "timm's benchmark results, which also count multiply-adds outside of convolutions";
// Parameters: He et al., "Deep Residual Learning" (arXiv 1512.03385), table 6. Multiply-adds of a network of
// 6n + 2 layers: 442,368 + 2n * 2,359,296 + 2 * (1,179,648 + (2n - 1) * 2,359,296) + 640.
inline constexpr std::string_view kSmallResNet = "He et al. 2015, table 6; multiply-adds by hand";

inline constexpr PublishedFigure kPublishedFigures[] = {
    {"lenet", 3274634, 0, 0, 0, "by hand, for TensorFlow's MNIST tutorial: 832 + 51264 + 3212288 + 10250"},
    {"cifarnet", 1756426, 0, 0, 0, "by hand: 4864 + 102464 + 1573248 + 73920 + 1930"},
    {"alexnet_v2", 50303912, 0, 0, 0,
     "by hand: 23296 + 307392 + 663936 + 1327488 + 884992 + 26218496 + 16781312 + 4097000"},
    {"vgg_a", 132863336, 0, 7.609e9, 0.0005e9, kTorchvision},
    {"vgg_a_bn", 132868840, 0, 7.609e9, 0.0005e9, kTorchvision},
    {"vgg_16", 138357544, 0, 15.470e9, 0.0005e9, kTorchvision},
    {"vgg_16_bn", 138365992, 0, 15.470e9, 0.0005e9, kTorchvision},
    {"vgg_19", 143667240, 0, 19.632e9, 0.0005e9, kTorchvision},
    {"vgg_19_bn", 143678248, 0, 19.632e9, 0.0005e9, kTorchvision},
    {"resnet_v1_18", 11689512, 0, 1.814e9, 0.0005e9, kTorchvision},
    {"resnet_v1_20", 0.27e6, 0.005e6, 40551040, 0, kSmallResNet},
    {"resnet_v1_34", 21797672, 0, 3.664e9, 0.0005e9, kTorchvision},
    {"resnet_v1_50", 25557032, 0, 4.089e9, 0.0005e9, kTorchvision},
    {"resnet_v1_101", 44549160, 0, 7.801e9, 0.0005e9, kTorchvision},
    {"resnet_v1_110", 1.7e6, 0.05e6, 252887680, 0, kSmallResNet},
    {"resnet_v1_152", 60192808, 0, 11.514e9, 0.0005e9, kTorchvision},
    {"resnet_v1_200", 64.67e6, 0.005e6, 15.07e9, 0.07e9, kTimm},
    {"resnet_v2_50", 25.55e6, 0.005e6, 4.11e9, 0.025e9, kTimm},
    {"resnet_v2_101", 44.54e6, 0.005e6, 7.83e9, 0.035e9, kTimm},
    {"resnet_v2_152", 60.19e6, 0.005e6, 11.55e9, 0.045e9, kTimm},
    {"resnet_v2_200", 64.7e6, 0.05e6, 0, 0, "as resnet_v1_200, within the normalisations"},
    {"mobilenet_v1", 4253864, 0, 569e6, 0.5e6, kMobileNet, Counted::kAll},
    {"mobilenet_v1_075", 2601976, 0, 325e6, 0.5e6, kMobileNet, Counted::kAll},
    {"mobilenet_v1_050", 1342536, 0, 149e6, 0.5e6, kMobileNet, Counted::kAll},
    {"mobilenet_v1_025", 475544, 0, 41e6, 0.5e6, kMobileNet, Counted::kAll},
    {"mobilenet_v2", 3504872, 0, 0.301e9, 0.0005e9, kTorchvision},
    {"mobilenet_v2_140", 6.06e6, 0.005e6, 582e6, 0.5e6, kSlimMobileNetV2, Counted::kWithoutNormalisation},
    {"mobilenet_v2_035", 1.66e6, 0.005e6, 59e6, 0.5e6, kSlimMobileNetV2, Counted::kWithoutNormalisation},
};

inline int64_t counted_parameters(const ModelMeta& meta, Counted counted) {
  switch (counted) {
    case Counted::kTrainable:
      return meta.parameters;
    case Counted::kAll:
      return meta.parameters + meta.moving_averages;
    case Counted::kWithoutNormalisation:
      return meta.parameters - meta.moving_averages;  // as many averages as scales and offsets
  }
  return 0;
}

}  // namespace mox
