// build/bin/bench_feeding --case=resnet_v1_50|lenet --data=real|synthetic [--steps=N] [--json]
//
// The rate of training when the input side works for it, and when it has nothing to do: the case on its data,
// decoded, augmented and shuffled as in a training run, or on one batch that lies in memory. --data_url names
// the data: a folder of photographs (a sub-directory a class) for resnet_v1_50, Fashion-MNIST for lenet.
// --threads, --data_threads and the other options are those of every run.
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "bench/json_line.h"
#include "bench/output_to_error.h"
#include "bench/small_cases.h"
#include "bench/step_rate_hook.h"
#include "models/zoo/zoo.h"
#include "moxing/moxing.h"
#include "runtime/data/pipeline.h"
#include "runtime/job/job.h"

namespace {

struct Case {
  mox::ModelFn model_fn;
  mox::OptimizerFn optimizer_fn;
  mox::Dataset data;
  int64_t batch_size, steps, warm_up_steps;
};

Case photographs() {
  const std::string network = "resnet_v1_50";
  const int size = static_cast<int>(mox::get_model_meta(network).image_size);
  const mox::data::ImageClassificationRaw folder(mox::flag("data_url"));
  const auto classes = static_cast<int64_t>(folder.label_names().size());
  mox::data::ImageOptions options;
  options.augmentation = mox::get_data_augmentation_fn(network, mox::ModeKeys::TRAIN, size, size);
  options.dtype = mox::preferred_image_dtype();
  return {.model_fn = [=](const mox::Inputs& in, mox::ModeKeys mode) -> mox::ModelSpec {
            auto [images, labels] = in.take<2>();
            const mox::Tensor logits =
                mox::get_model_fn(network, {.num_classes = classes})(images, mode).logits;
            return {.loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, labels))};
          },
          .optimizer_fn = mox::get_optimizer_fn("momentum", {.learning_rate = 0.01, .momentum = 0.9}),
          .data = folder.dataset(options),
          .batch_size = 16,
          .steps = 8,
          .warm_up_steps = 2};
}

Case lenet() {
  const bench::SmallCase of = bench::small_case("lenet");
  return {.model_fn = of.model_fn,
          .optimizer_fn = of.optimizer_fn,
          .data = mox::data::mnist(mox::flag("data_url"), "train", {.image_shape = of.image_shape}),
          .batch_size = 128,
          .steps = 80,
          .warm_up_steps = 8};
}

// The first batch of `data`, over and over: no copy is made.
mox::Dataset one_batch(const mox::Dataset& data, int64_t batch_size) {
  mox::Pipeline pipeline(data.batch(batch_size), {.seed = 1, .threads = 0});
  mox::Batch batch;
  if (!pipeline.next(&batch) || batch.size != batch_size)
    throw mox::DataError(fmt::format("the data has fewer samples than a batch, {}", batch_size));
  return mox::Dataset::from_arrays(batch.components).repeat();
}

double steps_per_second(const Case& of, bool real, int64_t steps) {
  const auto rate = std::make_shared<bench::StepRateHook>(of.warm_up_steps, steps);
  mox::Dataset data =
      real ? of.data.shuffle(of.data.cardinality()).repeat() : one_batch(of.data, of.batch_size);
  mox::run_or_throw({.input_fn = [&](mox::ModeKeys) { return data; },
                     .model_fn = of.model_fn,
                     .optimizer_fn = of.optimizer_fn,
                     .run_mode = mox::ModeKeys::TRAIN,
                     .batch_size = of.batch_size,
                     .max_number_of_steps = of.warm_up_steps + steps,
                     .log_every_n_steps = 0,
                     .hooks = {rate}});
  return rate->steps_per_second();
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("case", "lenet",
                   "What to train: resnet_v1_50 (on photographs) or lenet (on Fashion-MNIST).");
  mox::define_flag("data", "real",
                   "real: as in a training run. synthetic: one batch in memory, over and over.");
  mox::define_flag("steps", 0, "Steps that are timed, after a warm-up. 0: the case's own.");
  mox::define_flag("json", false, "Print one JSON object a line.");
  mox::init(argc, argv);
  try {
    const std::string name = mox::flag("case"), data = mox::flag("data");
    if (name != "resnet_v1_50" && name != "lenet")
      throw mox::NotFound(fmt::format("there is no case '{}'; there are resnet_v1_50 and lenet", name));
    if (data != "real" && data != "synthetic")
      throw mox::InvalidArgument(fmt::format("data must be real or synthetic, it is '{}'", data));
    const Case of = name == "lenet" ? lenet() : photographs();
    const auto steps = mox::get_flag<int64_t>("steps");
    const bool json = mox::get_flag<bool>("json");
    std::optional<bench::OutputToError> keep_clean;
    if (json) keep_clean.emplace();
    const double rate = steps_per_second(of, data == "real", steps > 0 ? steps : of.steps);
    keep_clean.reset();
    const double images_per_second = rate * static_cast<double>(of.batch_size);
    if (json)
      bench::print_json_line({.bench = "feeding",
                              .name = name + "_" + data,
                              .metric = "images_per_second",
                              .value = images_per_second,
                              .unit = "images/s"});
    else
      fmt::print("{} on {} data: {:.1f} images/s\n", name, data, images_per_second);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return mox::internal::exit_status_of(error);
  }
}
