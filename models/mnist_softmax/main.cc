// Softmax regression on MNIST-style images: the smallest complete program.
//
//   build/bin/mnist_softmax --data_url=/usr/share/datasets/fashion-mnist --train_url=softmax_run
#include <moxing/moxing.h>

namespace {

mox::Dataset input_fn(mox::ModeKeys mode) {
  const bool training = mode == mox::ModeKeys::TRAIN;
  auto images = mox::data::mnist(mox::flag("data_url"), training ? "train" : "t10k");
  return training ? images.shuffle(60000).repeat() : images;
}

mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys) {
  auto [x, y] = in.take<2>();  // x: [batch, 784], y: [batch]
  auto w = mox::get_variable("W", {784, 10}, mox::zeros());
  auto b = mox::get_variable("b", {10}, mox::zeros());
  auto logits = mox::matmul(x, w) + b;
  auto loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, y));
  return {.loss = loss,
          .log_info = {{"loss", loss}, {"accuracy", mox::accuracy(logits, y)}},
          .output_info = {{"class", mox::argmax(logits)}, {"probabilities", mox::softmax(logits)}}};
}

}  // namespace

// SGD at 0.5 makes accuracy jump by three points from step to step, so a longer run lowers the rate from the
// third epoch to the fifth, linearly (`->`): where it stops is then no matter of luck.
int main(int argc, char** argv) {
  mox::init(argc, argv,
            {{"inter_mode", "eval"},
             {"batch_size", 100},
             {"max_number_of_steps", 1000},
             {"optimizer.name", "sgd"},
             {"optimizer.learning_rate", "2:0.5,5:0.5->0.05"}});
  return mox::run({.input_fn = input_fn, .model_fn = model_fn, .log_dir = mox::flag("train_url")});
}
