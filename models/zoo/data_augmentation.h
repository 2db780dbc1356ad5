// The usual augmentation of each network.
#pragma once

#include <moxing/moxing.h>

#include <string_view>

namespace mox {

// The recipe that goes with a network of the zoo, for data sets of images (ImageOptions::augmentation):
//
//   lenet*                        grey in [0, 1], resized whole
//   cifar*, *cifar*,
//   resnet_v1_20, resnet_v1_110   TRAIN: padded by 4 pixels (an eighth of the height, at least) and cut,
//                                 mirrored; else whole
//   vgg*, alexnet*                TRAIN: shorter side random in [256, 512] (for 224; in proportion else),
//                                 cut, mirrored; else the centre of shorter side 256
//   inception*, resnet*,
//   mobilenet*, others            TRAIN: random-resized crop, mirrored; else the centre of shorter side 256
//                                 for 224
//
// Colours are normalised with ImageNet's means and deviations (CIFAR's for cifar). Inception's train recipe
// adds colour jitter, and its values lie in [-1, 1]. Throws InvalidArgument for a size below 1.
image::Augmentation get_data_augmentation_fn(std::string_view model_name, ModeKeys run_mode, int height,
                                             int width);

}  // namespace mox
