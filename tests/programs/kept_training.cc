// A training that is small in every way, for checkpoints that are kept in tests/fixtures/checkpoints. It uses
// nothing but what programs may, so that it can be built with an older tree
// as well (make_checkpoint_fixtures.sh).
//
// The model has what a checkpoint can hold: trained variables, slots of the optimizer, moving averages,
// random numbers of a step, data that are shuffled and cross the borders of epochs.
#include <moxing/moxing.h>

#include <cmath>

namespace {

constexpr int64_t kSamples = 22, kFeatures = 3;

// Samples of a plane. With `overflows` the weight of one of them is such that its scaled loss has
// no finite gradients.
mox::Dataset input_fn(mox::ModeKeys mode) {
  mox::Array x(mox::DType::kFloat32, {kSamples, kFeatures}), y(mox::DType::kFloat32, {kSamples, 1}),
      weight(mox::DType::kFloat32, {kSamples, 1});
  for (int64_t i = 0; i < kSamples; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < kFeatures; ++j) {
      const double value = std::sin(static_cast<double>(1 + 7 * i + 3 * j));
      x.values<float>()[i * kFeatures + j] = static_cast<float>(value);
      sum += static_cast<double>(j + 1) * value;
    }
    y.values<float>()[i] = static_cast<float>(sum);
    const bool overflows = mox::flag("overflows") == "true" && i == 5;
    weight.values<float>()[i] = overflows ? 1e36F : 1.0F;
  }
  const mox::Dataset data = mox::Dataset::from_arrays({x, y, weight});
  return mode == mox::ModeKeys::TRAIN ? data.shuffle(kSamples).repeat() : data;
}

mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys mode) {
  auto [x, y, weight] = in.take<3>();
  const int64_t batch = x.shape()[0];
  const mox::Tensor planes = mox::reshape(mox::layers::dense(x, 6, {.name = "hidden"}), {batch, 3, 2, 1});
  mox::Tensor hidden = mox::relu(mox::layers::batch_norm(planes, mode, {.name = "norm"}));
  hidden = mox::layers::dropout(mox::reshape(hidden, {batch, 6}), 0.25F, mode);
  const mox::Tensor answer = mox::layers::dense(hidden, 1, {.name = "answer"});
  const mox::Tensor loss = mox::reduce_mean(mox::square(answer - y) * weight);
  mox::ModelSpec spec{.loss = loss, .log_info = {{"loss", loss}}};
  if (mox::flag("stateful_hooks") == "true")
    spec.hooks = {mox::plateau_learning_rate_hook(
                      {.metric = "loss", .larger_is_better = false, .min_change = 0.6, .patience = 2}, 0.5),
                  mox::early_stopping_hook(
                      {.metric = "loss", .larger_is_better = false, .min_change = 0.6, .patience = 9})};
  return spec;
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("overflows", std::string("false"),
                   "Whether one sample's gradients overflow: true or false.");
  mox::define_flag("stateful_hooks", std::string("false"),
                   "Whether hooks with a memory look on: true or false.");
  mox::init(argc, argv);
  return mox::run({.input_fn = input_fn,
                   .model_fn = model_fn,
                   .optimizer_fn = mox::get_optimizer_fn("adam", {.learning_rate = 0.05}),
                   .batch_size = 4,
                   .log_dir = mox::flag("train_url"),
                   .log_every_n_steps = 0,
                   .save_summary_steps = 0,
                   .save_model_secs = 0,
                   .seed = 7});
}
