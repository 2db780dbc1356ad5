// MindSpore's dimension-reduced training of ResNet-50, in its two stages.
//
//   build/bin/dim_reduce_resnet --config models/dim_reduce_resnet/stage_one.yaml --data_url=DIRECTORY
//   build/bin/dim_reduce_resnet --config models/dim_reduce_resnet/stage_two.yaml --data_url=DIRECTORY
//
// or, in one run, with models/dim_reduce_resnet/single_run.yaml; `build/bin/mox launch -n 2 -- ...` on two
// ranks. DIRECTORY holds folders train/CLASS/*.jpg and validation/CLASS/*.jpg, or another format that
// data.format names. docs/from_mindspore.md compares the job with the original, docs/boost.md explains
// stage 2.
#include <models/zoo/zoo.h>
#include <moxing/moxing.h>

#include "models/dim_reduce_resnet/epoch_lines.h"
#include "models/dim_reduce_resnet/learning_rates.h"
#include "models/image_classifier/answers.h"
#include "models/image_classifier/classifier_data.h"
#include "models/image_classifier/data_options.h"
#include "models/image_classifier/kept_options.h"

namespace {

using image_classifier::ClassifierData;

// The original's smoothing s gives the right class 1 - s and each of the C - 1 wrong ones s / (C - 1). Ours
// (label_smoothing) spreads its share over all C classes; the same targets come of s C / (C - 1).
double smoothing_of(double factor, int64_t classes) {
  if (factor == 0) return 0;
  const double share = factor * static_cast<double>(classes) / (classes - 1);
  if (factor < 0 || share >= 1)
    throw mox::InvalidArgument("label_smooth_factor is " + std::to_string(factor) + ": with " +
                               std::to_string(classes) +
                               " classes it must be at least 0 and below the share of the wrong classes, " +
                               std::to_string(1 - 1 / static_cast<double>(classes)));
  return share;
}

mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys mode, const ClassifierData& data) {
  mox::NetworkOptions options{.num_classes = data.num_classes()};
  if (!mox::get_model_meta(mox::flag("model.name")).takes_any_image_size)
    options.image_size = in[0].shape()[2];
  const auto output = mox::get_model_fn(mox::flag("model.name"), options)(in[0], mode);
  if (mode == mox::ModeKeys::PREDICT)
    return {.output_info = {{"class", mox::argmax(output.logits)},
                            {"probabilities", output.end_point("predictions")}}};
  const mox::Tensor labels = in[1];
  const double smoothing = smoothing_of(mox::get_flag<double>("label_smooth_factor"), data.num_classes());
  const mox::Tensor loss = mox::reduce_mean(
      mox::sparse_softmax_cross_entropy(output.logits, labels, {.label_smoothing = smoothing}));
  return {.loss = loss,
          .log_info = {{"loss", loss}, {"accuracy", mox::accuracy(output.logits, labels)}},
          .metrics = {{"accuracy", mox::metrics::accuracy(output.logits, labels)}}};
}

// The rates end where epoch_size says, at lr_end: further epochs would learn nothing, and say nothing of it.
void require_rates_for_all_epochs() {
  const double epochs = mox::get_flag<int64_t>("max_epochs");
  const double rates = mox::get_flag<double>("epoch_size");
  if (epochs > rates && !mox::get_flag<bool>("boost.dim_reduce"))
    throw mox::InvalidArgument("max_epochs is " + std::to_string(epochs) +
                               ", but the learning rates are made for " + std::to_string(rates) +
                               " epochs (epoch_size)");
}

// Momentum. Without groups, weight decay leaves vectors alone: biases, and the scales and offsets of
// normalisation, which the original names gamma and beta.
mox::OptimizerFn optimizer() {
  require_rates_for_all_epochs();
  return mox::get_optimizer_fn("momentum", {.learning_rate = dim_reduce_resnet::learning_rates(
                                                {.decay = mox::flag("lr_decay_mode"),
                                                 .initial = mox::get_flag<double>("lr_init"),
                                                 .highest = mox::get_flag<double>("lr_max"),
                                                 .last = mox::get_flag<double>("lr_end"),
                                                 .warm_up_epochs = mox::get_flag<double>("warmup_epochs"),
                                                 .epochs = mox::get_flag<double>("epoch_size")}),
                                            .weight_decay = mox::get_flag<double>("weight_decay"),
                                            .momentum = mox::get_flag<double>("momentum")});
}

void define_flags() {
  mox::define_flag("model.name", "resnet_v1_50", "The network: a name of docs/zoo.md.");
  mox::define_flag("model.image_size", 0,
                   "Height and width of the images. 0: the network's, or the data's if it has one.");
  mox::define_flag("label_smooth_factor", 0.1, "Share of each label that the wrong classes get.");
  mox::define_flag("lr_decay_mode", "linear", "How the learning rate falls: steps, poly, cosine or linear.");
  mox::define_flag("lr_init", 0.0, "The learning rate at the first step of the warm-up.");
  mox::define_flag("lr_max", 0.1, "The highest learning rate.");
  mox::define_flag("lr_end", 0.0, "The learning rate at the end (cosine and linear).");
  mox::define_flag("warmup_epochs", 0.0, "Epochs in which the learning rate rises.");
  mox::define_flag("epoch_size", 90.0, "Epochs that the learning rates are made for.");
  mox::define_flag("weight_decay", 1e-4,
                   "Weight decay, but for biases and the scales and offsets of normalisation.");
  mox::define_flag("momentum", 0.9, "The optimizer's momentum.");
  image_classifier::define_data_flags();
  image_classifier::define_prediction_flags();
}

}  // namespace

int main(int argc, char** argv) {
  define_flags();
  mox::init(argc, argv, {{"inter_mode", "eval"}, {"optimizer.name", "momentum"}});
  const auto kept = image_classifier::kept_options({{"model.name"}, {"model.image_size", true}});
  image_classifier::use_options_of_run(kept);
  const int64_t size = mox::get_flag<int64_t>("model.image_size");
  const ClassifierData data(mox::flag("model.name"), {.train = size, .eval = size});
  return mox::run(
      {.input_fn = [&](mox::ModeKeys mode) { return data.dataset(mode); },
       .model_fn = [&](const mox::Inputs& in, mox::ModeKeys mode) { return model_fn(in, mode, data); },
       .optimizer_fn = optimizer(),
       .output_fn =
           mox::flag("run_mode") == "predict" ? image_classifier::print_answers(data.label_names()) : nullptr,
       .log_dir = mox::flag("train_url"),
       .hooks = {std::make_shared<dim_reduce_resnet::EpochLines>(), mox::label_names_hook(data.label_names()),
                 image_classifier::kept_options_hook(kept)}});
}
