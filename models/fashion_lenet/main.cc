// LeNet on Fashion-MNIST: conv 32x5x5, pool, conv 64x5x5, pool, dense 1024 with dropout, dense 10.
//
//   build/bin/fashion_lenet --config models/fashion_lenet/fashion_lenet.yaml
//
// LeCun et al., "Gradient-based learning applied to document recognition" (1998), in the wider form of
// TensorFlow's tutorials. Run it again with another --max_epochs to go on from the checkpoint.
#include <moxing/moxing.h>

namespace {

mox::Dataset input_fn(mox::ModeKeys mode) {
  const bool training = mode == mox::ModeKeys::TRAIN;
  auto images = mox::data::mnist(mox::flag("data_url"), training ? "train" : "t10k",
                                 {.image_shape = mox::Shape{1, 28, 28}});
  return training ? images.shuffle(60000).repeat() : images;
}

mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys mode) {
  auto [images, labels] = in.take<2>();  // [batch, 1, 28, 28] and [batch]
  auto x = mox::layers::conv2d(images, 32, {5, 5}, {.name = "conv1", .activation = mox::relu});
  x = mox::max_pool(x);
  x = mox::layers::conv2d(x, 64, {5, 5}, {.name = "conv2", .activation = mox::relu});
  x = mox::flatten(mox::max_pool(x));
  x = mox::layers::dense(x, 1024, {.name = "fc1", .activation = mox::relu});
  x = mox::layers::dropout(x, mox::get_flag<double>("dropout"), mode);
  auto logits = mox::layers::dense(x, 10, {.name = "logits"});
  auto loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, labels));
  return {.loss = loss,
          .log_info = {{"loss", loss}, {"accuracy", mox::accuracy(logits, labels)}},
          .metrics = {{"accuracy", mox::metrics::accuracy(logits, labels)}},
          .output_info = {{"class", mox::argmax(logits)}, {"probabilities", mox::softmax(logits)}}};
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("dropout", 0.4,
                   "Share of the dense layer's units that are dropped in training, in [0, 1).");
  mox::init(argc, argv,
            {{"inter_mode", "eval"},
             {"batch_size", 128},
             {"optimizer.name", "momentum"},
             {"optimizer.learning_rate", 0.05},
             {"optimizer.momentum", 0.9}});
  return mox::run({.input_fn = input_fn, .model_fn = model_fn, .log_dir = mox::flag("train_url")});
}
