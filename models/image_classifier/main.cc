// The pre-set job: trains any network of the zoo on images, as a YAML file says, without a line of C++.
//
//   build/bin/image_classifier --config models/image_classifier/photographs.yaml
//
// docs/image_classifier.md describes the options.
#include <models/zoo/zoo.h>
#include <moxing/moxing.h>

#include <algorithm>
#include <utility>

#include "models/image_classifier/answers.h"
#include "models/image_classifier/class_weights.h"
#include "models/image_classifier/classifier_data.h"
#include "models/image_classifier/data_options.h"
#include "models/image_classifier/fine_tuning.h"
#include "models/image_classifier/kept_options.h"
#include "models/image_classifier/pretraining.h"

namespace {

constexpr int64_t kTop = 5;

std::vector<mox::KeptOption> kept_options() {
  return image_classifier::kept_options(
      {{"model.name"}, {"model.image_size", true}, {"model.eval_image_size", true}});
}

// Each class counts `weights` (image_classifier::class_weights).
mox::Tensor loss_of(const mox::Tensor& logits, const mox::Tensor& labels, bool training,
                    const std::vector<double>& weights) {
  const double smoothing = training ? mox::get_flag<double>("label_smoothing") : 0;
  if (!weights.empty())
    return mox::reduce_mean(image_classifier::weighted_cross_entropy(logits, labels, weights, smoothing));
  const mox::CrossEntropyOptions options{.label_smoothing = smoothing};
  return mox::reduce_mean(labels.shape().rank() == 2
                              ? mox::softmax_cross_entropy(logits, labels, options)
                              : mox::sparse_softmax_cross_entropy(logits, labels, options));
}

// The share of samples whose class is among the `k` that score highest.
mox::Tensor share_of_right(const mox::Tensor& logits, const mox::Tensor& classes, int64_t k,
                           const std::vector<double>& weights) {
  const mox::Tensor right = mox::cast(mox::in_top_k(logits, classes, k), mox::DType::kFloat32);
  if (weights.empty()) return mox::reduce_mean(right);
  return mox::weighted_mean(right, mox::class_weights(classes, weights));
}

// What run_mode predict computes, of data with labels or without.
mox::ModelSpec predictions_of(const mox::NetworkOutput& output, bool many_labels) {
  if (many_labels) return {.output_info = {{"probabilities", mox::sigmoid(output.logits)}}};
  return {.output_info = {{"class", mox::argmax(output.logits)},
                          {"probabilities", output.end_point("predictions")}}};
}

// Each class is a question of its own.
mox::ModelSpec with_many_labels(const mox::NetworkOutput& output, const mox::Tensor& labels) {
  const mox::Tensor right = mox::equal(mox::greater(output.logits, 0.0f), mox::greater(labels, 0.5f));
  const mox::Tensor loss = mox::reduce_mean(mox::sigmoid_cross_entropy(output.logits, labels));
  return {
      .loss = loss,
      .log_info = {{"loss", loss}, {"accuracy", mox::reduce_mean(mox::cast(right, mox::DType::kFloat32))}}};
}

mox::metrics::NamedMetrics metrics_of(const mox::Tensor& logits, const mox::Tensor& classes,
                                      const std::vector<std::string>& label_names,
                                      const std::vector<double>& weights) {
  mox::metrics::NamedMetrics metrics{
      {"accuracy", mox::metrics::accuracy(logits, classes, {.class_weights = weights})}};
  if (logits.shape()[1] > kTop)
    metrics.emplace_back("accuracy_top_5",
                         mox::metrics::top_k_accuracy(logits, classes, kTop, {.class_weights = weights}));
  if (mox::get_flag<bool>("metrics.per_class"))
    metrics.emplace_back(
        "classes", mox::metrics::per_class_table(logits, classes,
                                                 {.class_weights = weights, .class_names = label_names}));
  return metrics;
}

// A layer that finds no room in small images knows nothing of options.
mox::NetworkOutput output_of(const std::string& network, const mox::NetworkOptions& options,
                             const mox::Tensor& images, mox::ModeKeys mode) {
  try {
    return mox::get_model_fn(network, options)(images, mode);
  } catch (const mox::InvalidArgument& error) {
    const int64_t height = images.shape()[2], width = images.shape()[3],
                  usual = mox::get_model_meta(network).image_size;
    if (std::min(height, width) >= usual) throw;
    throw mox::InvalidArgument(std::string(error.what()) + ". The images are " + std::to_string(height) +
                               " x " + std::to_string(width) + " pixels, " + network + " is made for " +
                               std::to_string(usual) +
                               ". If they are too small for it, use larger ones (model.image_size)");
  }
}

mox::ModelSpec build_model(const mox::Inputs& in, mox::ModeKeys mode, const std::string& network,
                           const image_classifier::ClassifierData& data) {
  const mox::Tensor images = in[0];  // [batch, channels, height, width]
  mox::NetworkOptions options{.num_classes = data.num_classes()};
  if (!mox::get_model_meta(network).takes_any_image_size) options.image_size = images.shape()[2];
  const auto output = output_of(network, options, images, mode);
  if (mode == mox::ModeKeys::PREDICT) return predictions_of(output, data.has_many_labels());
  const mox::Tensor labels = in[1];  // [batch], or [batch, classes] of many labels and after MixUp
  if (data.has_many_labels()) return with_many_labels(output, labels);
  // Of a mixture, the larger part counts.
  const mox::Tensor classes = labels.shape().rank() == 2 ? mox::argmax(labels) : labels;
  const std::vector<double> weights =
      image_classifier::class_weights(data.label_names(), data.has_many_labels());
  mox::Tensor loss = loss_of(output.logits, labels, mode == mox::ModeKeys::TRAIN, weights);
  mox::NamedTensors log_info{
      {"loss", loss},
      {"accuracy", weights.empty() ? mox::accuracy(output.logits, classes)
                                   : share_of_right(output.logits, classes, 1, weights)}};
  if (data.num_classes() > kTop)
    log_info.emplace_back("accuracy_top_5", share_of_right(output.logits, classes, kTop, weights));
  return {.loss = loss,
          .log_info = std::move(log_info),
          .metrics = metrics_of(output.logits, classes, data.label_names(), weights)};
}

// `begins`: whether it is the first training of the process, which starts from what the options name. What
// follows it goes on from what it has learnt.
int run(const image_classifier::ClassifierData& data, const std::string& network, bool begins) {
  return mox::run(
      {.input_fn = [&](mox::ModeKeys mode) { return data.dataset(mode); },
       .model_fn = [&](const mox::Inputs& in,
                       mox::ModeKeys mode) { return build_model(in, mode, network, data); },
       .output_fn =
           mox::flag("run_mode") == "predict" ? image_classifier::print_answers(data.label_names()) : nullptr,
       .starting_variables = begins ? image_classifier::pretrained_variables(network) : nullptr,
       .starting_variables_name = "model.pretrained '" + mox::flag("model.pretrained") + "'",
       .auto_batch = !data.batches(),
       .log_dir = mox::flag("train_url"),
       .hooks = {mox::label_names_hook(data.label_names()), mox::image_model_hook(data.image_model()),
                 image_classifier::kept_options_hook(kept_options())}});
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("model.name", "resnet_v1_18", "The network: a name of docs/zoo.md.");
  mox::define_flag("model.image_size", 0,
                   "Height and width of the images. 0: the network's, or the data's if it has one.");
  mox::define_flag(
      "model.eval_image_size", 0,
      "Height and width of the images in evaluation: a little larger than in training helps after "
      "random-resized crops. 0: as in training.");
  mox::define_flag("label_smoothing", 0.0,
                   "Share of each label that is spread over all classes in training, in [0, 1).");
  mox::define_flag("metrics.per_class", false,
                   "Whether an evaluation shows precision, recall and F1 of each class.");
  image_classifier::define_class_weight_flags();
  image_classifier::define_data_flags();
  image_classifier::define_prediction_flags();
  image_classifier::define_pretraining_flags();
  image_classifier::define_fine_tuning_flags();
  mox::init(argc, argv, {{"inter_mode", "eval"}});
  image_classifier::use_options_of_run(kept_options());
  const std::string network = mox::flag("model.name");
  const image_classifier::ClassifierData data(network,
                                              {.train = mox::get_flag<int64_t>("model.image_size"),
                                               .eval = mox::get_flag<int64_t>("model.eval_image_size")});
  const std::vector<std::string> one_label{"image_folder", "tfrecord", "npz",  "csv",
                                           "cifar10",      "cifar100", "mnist"};
  image_classifier::require_effect(mox::flag("data.format"),
                                   {{"label_smoothing", one_label}, {"metrics.per_class", one_label}});
  image_classifier::class_weights(data.label_names(), data.has_many_labels());  // mistakes, before all else
  bool begins = true;
  const auto train = [&](const image_classifier::ClassifierData& images) {
    return run(images, network, std::exchange(begins, false));
  };
  if (const int64_t size = image_classifier::pretraining_image_size(); size > 0) {
    const auto small = data.with_image_size("pretraining.image_size", size);
    if (const int status = image_classifier::pretrain([&] { return train(small); }); status != 0)
      return status;
  }
  const auto epoch = [&] { return data.dataset(mox::ModeKeys::TRAIN).epoch_size(); };
  if (const int status = image_classifier::train_head_first(network, epoch, [&] { return train(data); });
      status != 0)
    return status;
  return train(data);
}
