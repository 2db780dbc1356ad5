#include "bench/small_cases.h"

#include "moxing/moxing.h"

namespace bench {
namespace {

mox::ModelSpec softmax(const mox::Inputs& in, mox::ModeKeys) {
  auto [x, y] = in.take<2>();
  auto w = mox::get_variable("W", {784, 10}, mox::zeros());
  auto b = mox::get_variable("b", {10}, mox::zeros());
  auto logits = mox::matmul(x, w) + b;
  return {.loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, y))};
}

mox::ModelSpec lenet(const mox::Inputs& in, mox::ModeKeys mode) {
  auto [images, labels] = in.take<2>();
  auto x = mox::layers::conv2d(images, 32, {5, 5}, {.name = "conv1", .activation = mox::relu});
  x = mox::max_pool(x);
  x = mox::layers::conv2d(x, 64, {5, 5}, {.name = "conv2", .activation = mox::relu});
  x = mox::flatten(mox::max_pool(x));
  x = mox::layers::dense(x, 1024, {.name = "fc1", .activation = mox::relu});
  x = mox::layers::dropout(x, 0.4F, mode);
  auto logits = mox::layers::dense(x, 10, {.name = "logits"});
  return {.loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, labels))};
}

// Multiply-adds of a sample, forward.
constexpr double kConv1 = 28.0 * 28 * 32 * 25, kConv2 = 14.0 * 14 * 64 * 25 * 32,
                 kDense1 = 64.0 * 7 * 7 * 1024, kDense2 = 1024.0 * 10;

}  // namespace

SmallCase small_case(const std::string& name) {
  if (name == "softmax")
    return {.name = name,
            .batch_size = 100,
            .steps = 4000,
            .image_shape = {784},
            .model_fn = softmax,
            .optimizer_fn = mox::get_optimizer_fn("sgd", {.learning_rate = 0.5}),
            .floating_point_operations_per_sample = 2 * 2 * 784.0 * 10};
  if (name == "lenet")
    return {.name = name,
            .batch_size = 32,
            .steps = 60,
            .image_shape = {1, 28, 28},
            .model_fn = lenet,
            .optimizer_fn = mox::get_optimizer_fn("momentum", {.learning_rate = 0.01, .momentum = 0.9}),
            // The images need no gradient.
            .floating_point_operations_per_sample = 2 * (2 * kConv1 + 3 * (kConv2 + kDense1 + kDense2))};
  throw mox::NotFound("there is no case '" + name + "'; there are softmax and lenet");
}

}  // namespace bench
