// A program that is given a secret, and an address that names who asks.
#include <moxing/moxing.h>

namespace {

mox::Dataset input_fn(mox::ModeKeys) { return mox::data::mnist(mox::flag("data_url"), "train").repeat(); }

mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys) {
  auto [x, y] = in.take<2>();
  auto w = mox::get_variable("W", {784, 10}, mox::zeros());
  auto loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(mox::matmul(x, w), y));
  return {.loss = loss, .log_info = {{"loss", loss}}};
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_secret_flag("api_key", "The key of a service.");
  mox::define_flag("service_url", "", "Where the service is.");
  mox::init(argc, argv);
  return mox::run({.input_fn = input_fn,
                   .model_fn = model_fn,
                   .optimizer_fn = mox::get_optimizer_fn("sgd"),
                   .log_dir = mox::flag("train_url")});
}
