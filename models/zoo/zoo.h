// The network zoo: published convolutional networks by name.
//
//   mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys mode) {
//     auto [images, labels] = in.take<2>();
//     auto [logits, end_points] = mox::get_model_fn("resnet_v1_50", {.num_classes = 100})(images, mode);
//     auto loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, labels));
//     return {.loss = loss, .log_info = {{"loss", loss}, {"accuracy", mox::accuracy(logits, labels)}}};
//   }
//
// Link the target mox_zoo. docs/zoo.md lists the networks with their sizes; `mox import` gives them the
// weights of torchvision's networks.
#pragma once

#include <models/zoo/data_augmentation.h>
#include <moxing/moxing.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mox {

// What a network makes of a batch of images.
struct NetworkOutput {
  Tensor logits;  // float32 [batch, num_classes], not normalised; with num_classes 0 the features
  // The stages by name, in order ("conv1", "block2", "global_pool", ...); last "logits" and "predictions"
  // (softmax(logits)), unless num_classes is 0. Those that nothing uses cost nothing.
  NamedTensors end_points;

  // Throws NotFound, naming those that exist.
  const Tensor& end_point(std::string_view name) const;
};

// Settings that every network takes. Those without a value have the default stated here; one that the network
// has no use for (dropout for a ResNet, batch_norm_* for a network without batch normalisation) must
// not be set.
struct NetworkOptions {
  // >= 1; default: that of the published network (ModelMeta::num_classes). 0: the network ends before its
  // last layer, and `logits` are the features [batch, number] that go into it.
  std::optional<int64_t> num_classes = {};
  // Height and width of the images, which are then required. Default: any size for networks that end with a
  // global mean; ModelMeta::image_size for those whose dense layers are made for one size (lenet, cifarnet,
  // alexnet, vgg).
  std::optional<int64_t> image_size = {};
  // weight_decay * sum(w^2) / 2 of every convolution and dense kernel (not of biases and normalisation) is
  // added to the loss, as "regularization_losses". Use this or the optimizer's weight_decay: with both,
  // kernels are decayed twice, of which the run warns. >= 0.
  float weight_decay = 0;
  std::optional<float> batch_norm_momentum = {};  // of the moving averages; default 0.9; in [0, 1]
  // > 0; default 1e-5, as torchvision's. No checkpoint and no torchvision state holds it: a network that was
  // trained with another one is to be evaluated, continued and exported with the same (docs/zoo.md).
  std::optional<float> batch_norm_epsilon = {};
  // Computes the shortcuts that are convolutions again in the backward pass: less memory, one to four
  // hundredths more time (docs/recomputation.md). For ResNets of version 1 whose shortcuts are such.
  bool recompute_shortcuts = false;
  // share of the units dropped in TRAIN; default: ModelMeta::dropout; in [0, 1)
  std::optional<float> dropout = {};
};

// images: float32 or bfloat16 [batch, channels, height, width]; with `precision: bf16`, the first convolution
// takes bfloat16 images (preferred_image_dtype) without a cast. All variables are made under the scope named
// after the network. Throws InvalidArgument for images of the wrong type or size, naming what
// the network takes.
using NetworkFn = std::function<NetworkOutput(const Tensor& images, ModeKeys mode)>;

// The network of that name. Options are checked here. Throws InvalidArgument for an unknown name (naming the
// known ones), for an option that the network does not use and for a value out of its range.
NetworkFn get_model_fn(std::string_view name, const NetworkOptions& options = {});

// The facts of a network in its published form: with default options, one image of image_size.
struct ModelMeta {
  std::string name;
  std::string paper;       // where the network is described
  int64_t image_size = 0;  // height and width that it was published for
  int64_t channels = 0;    // of the images
  int64_t num_classes = 0;
  std::optional<float> dropout;  // the default; none: the network has no dropout
  bool has_batch_norm = false;
  bool takes_any_image_size = false;
  // The scope of the last layer, whose variables alone depend on num_classes: "resnet_v1_18/logits".
  std::string head;
  // Counted in the graph that get_model_fn builds:
  int64_t parameters = 0;       // elements of the trainable variables
  int64_t moving_averages = 0;  // elements of the others
  int64_t multiply_adds = 0;    // of convolutions and dense layers, for one image forward
};

// Throws InvalidArgument for an unknown name. Builds the graph to count, which takes milliseconds and no
// tensor memory.
ModelMeta get_model_meta(std::string_view name);

// The names that get_model_fn knows, in the order of docs/zoo.md.
std::vector<std::string> model_names();

}  // namespace mox
