// A program with a mistake in the user's own code, chosen by --fault.
#include <moxing/moxing.h>

#include <stdexcept>

namespace {

mox::Dataset input_fn(mox::ModeKeys) { return mox::data::mnist(mox::flag("data_url"), "train"); }

mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys) {
  const std::string fault = mox::flag("fault");
  if (fault == "exception") throw std::runtime_error("a mistake of the program");
  auto [x, y] = in.take<2>();
  auto w = mox::get_variable("W", {fault == "shape" ? 783 : 784, 10}, mox::zeros());
  auto loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(mox::matmul(x, w), y));
  return {.loss = loss, .log_info = {{"loss", loss}}};
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("fault", std::string("none"), "The mistake to make: shape, exception, optimizer or none.");
  mox::init(argc, argv);
  return mox::run(
      {.input_fn = input_fn,
       .model_fn = model_fn,
       .optimizer_fn = mox::get_optimizer_fn(mox::flag("fault") == "optimizer" ? "momentun" : "sgd"),
       .log_dir = mox::flag("train_url")});
}
