// The CIFAR-10 job: ResNet-20 of He et al. (arXiv:1512.03385, 4.2) on 32 x 32 images, padded,
// cut and mirrored.
//
//   build/bin/cifar_resnet --config models/cifar_resnet/cifar_resnet.yaml --data_url=DIRECTORY
//
//   build/bin/mox launch -n 4 -- build/bin/cifar_resnet ...     on four ranks, each with a share of a batch
//
// DIRECTORY holds the binary or the Python version of CIFAR-10; models/cifar_resnet/make_cifar_files.py makes
// files of the same formats from Fashion-MNIST.
#include <models/zoo/zoo.h>
#include <moxing/moxing.h>

namespace {

mox::Dataset input_fn(mox::ModeKeys mode) {
  const bool training = mode == mox::ModeKeys::TRAIN;
  auto images = mox::data::cifar10(
      mox::flag("data_url"), training ? "train" : "test",
      {.augmentation = mox::get_data_augmentation_fn(mox::flag("model_name"), mode, 32, 32),
       .dtype = mox::preferred_image_dtype()});
  return training ? images.shuffle(images.cardinality()).repeat() : images;
}

mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys mode) {
  auto [images, labels] = in.take<2>();  // [batch, 3, 32, 32] and [batch]
  auto logits = mox::get_model_fn(mox::flag("model_name"), {.num_classes = 10})(images, mode).logits;
  auto loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, labels));
  return {.loss = loss,
          .log_info = {{"loss", loss}, {"accuracy", mox::accuracy(logits, labels)}},
          .metrics = {{"accuracy", mox::metrics::accuracy(logits, labels)}},
          .output_info = {{"class", mox::argmax(logits)}, {"probabilities", mox::softmax(logits)}}};
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("model_name", "resnet_v1_20",
                   "The network: resnet_v1_20, resnet_v1_110, cifarnet or another of docs/zoo.md.");
  mox::init(argc, argv,
            {{"inter_mode", "eval"},
             {"batch_size", 128},
             {"optimizer.name", "momentum"},
             {"optimizer.learning_rate", "82:0.1,123:0.01,164:0.001"},
             {"optimizer.weight_decay", 1e-4},
             {"optimizer.momentum", 0.9}});
  return mox::run({.input_fn = input_fn, .model_fn = model_fn, .log_dir = mox::flag("train_url")});
}
