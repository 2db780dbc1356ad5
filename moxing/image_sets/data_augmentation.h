// The usual augmentation of each network, and the type of its images.
#pragma once

#include <string_view>

#include "moxing/image/augmentation.h"
#include "moxing/model/mode_keys.h"
#include "runtime/tensor/dtype.h"

namespace mox {

// The recipe that goes with a network of the zoo, for data sets of images (ImageOptions::augmentation):
//
//   lenet*                        grey in [0, 1], resized whole
//   cifar*, *cifar*,
//   resnet_v1_20, resnet_v1_110   TRAIN: padded by 4 pixels (an eighth of the height, at least) and cut,
//                                 mirrored; else whole
//   vgg*, alexnet*                TRAIN: shorter side random in [256, 512] (for 224; in proportion else),
//   cut,
//                                 mirrored; else the centre of shorter side 256
//   inception*, resnet*, others   TRAIN: random-resized crop, mirrored; else the centre of shorter side 256
//                                 for 224
//
// Colours are normalised with ImageNet's means and deviations (CIFAR's for cifar). Inception's train recipe
// adds colour jitter, and its values lie in [-1, 1]. Throws InvalidArgument for a size below 1.
image::Augmentation get_data_augmentation_fn(std::string_view model_name, ModeKeys run_mode, int height,
                                             int width);

// The dtype in which a run wants its images (ImageOptions::dtype): kBFloat16 with `precision: bf16` on a
// processor that can compute in it, else kFloat32. A convolution or matrix product that is given float32
// images rounds them to the same bits, in a pass of its own over the batch; layers and the zoo's networks
// take either. A model that does something else with its images, or whose first layer stands in a scope of
// force_dtype kFloat32, computes with the rounded ones. Ask in input_fn or model_fn and not before mox::run,
// in which ranks agree on the instructions that they compute with: this fixes them
// (ops/processor/instruction_set.h). Throws FailedPrecondition before mox::init.
DType preferred_image_dtype();

}  // namespace mox
