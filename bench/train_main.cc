// build/bin/bench_train --model=resnet_v1_50 [--batch_size=16] [--devices=1] [--precision=fp32|bf16]
// [--steps=N]
//                       [--profile] [--json]
//
// Our side of ./dev bench train: trains a network of the zoo on one batch of random images through mox::run
// and reports images a second after a warm-up, the time from model_fn to the first step, and the peak of
// resident memory. --profile tells where the time of a step goes instead. --threads and the other options are
// those of every run.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "bench/harness/threads_flag.h"
#include "bench/json_line.h"
#include "bench/output_to_error.h"
#include "bench/step_categories.h"
#include "bench/step_profile.h"
#include "bench/step_rate_hook.h"
#include "models/zoo/zoo.h"
#include "moxing/console/console.h"
#include "runtime/base/resource_limits.h"
#include "runtime/base/seconds.h"
#include "runtime/base/team.h"
#include "runtime/job/job.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  std::string name;  // "resnet_v1_50_16_fp32"
  std::string model;
  std::string precision;
  int64_t batch_size, steps, warm_up_steps;
};

// Takes the time at the first step.
class FirstStepHook : public mox::Hook {
 public:
  void before_run(mox::Session& session) override {
    if (session.global_step() == session.first_step()) at_ = Clock::now();
  }
  Clock::time_point at() const { return at_; }

 private:
  Clock::time_point at_;
};

// One batch, over and over: no copy is made, and PyTorch's side gets its batch for nothing as well.
mox::Dataset random_images(const Case& of, const mox::ModelMeta& meta) {
  const mox::Shape shape{of.batch_size, meta.channels, meta.image_size, meta.image_size};
  mox::Array images(mox::DType::kFloat32, shape), labels(mox::DType::kInt64, {of.batch_size});
  uint32_t state = 1;
  const auto next = [&state] { return (state = state * 1664525 + 1013904223) >> 8; };
  for (float& pixel : images.values<float>()) pixel = static_cast<float>(next()) / (1 << 23) - 1.0F;
  for (int64_t& label : labels.values<int64_t>()) label = next() % meta.num_classes;
  return mox::Dataset::from_arrays({images, labels}).repeat();
}

mox::ModelSpec training_spec(const std::string& model, const mox::Inputs& in, mox::ModeKeys mode) {
  auto [images, labels] = in.take<2>();
  const mox::Tensor logits = mox::get_model_fn(model)(images, mode).logits;
  return {.loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, labels))};
}

mox::OptimizerFn momentum() {
  return mox::get_optimizer_fn("momentum", {.learning_rate = 0.01, .momentum = 0.9});
}

void report(const Case& of, const std::string& metric, double value, const std::string& unit) {
  if (mox::get_flag<bool>("json")) {
    bench::print_json_line(
        {.bench = "train", .name = of.name, .metric = metric, .value = value, .unit = unit});
  } else {
    fmt::print("{}: {} {:.4g} {}\n", of.name, metric, value, unit);
  }
}

void profile(const Case& of, const mox::ModelMeta& meta) {
  const bench::ProfileOptions options{
      .batch_size = of.batch_size,
      .warm_up_steps = of.warm_up_steps,
      .steps = of.steps,
      .threads = bench::threads_flag(),
      .data_threads = 0,
      .rules = {.precision = of.precision == "bf16" ? mox::Precision::kBFloat16 : mox::Precision::kFloat32,
                .recomputed = mox::recomputed_normalisations(mox::flag("recompute")),
                .direct_convolutions = mox::flag("conv_algorithm") == "direct",
                .convolution_error = mox::get_flag<double>("conv_error")}};
  const bench::StepProfile profile = bench::profile_steps(
      [&](const mox::Inputs& in, mox::ModeKeys mode) { return training_spec(of.model, in, mode); },
      momentum(), random_images(of, meta), options);
  if (!mox::get_flag<bool>("json")) fmt::print("{}", bench::describe(profile, options));
  for (const auto& [category, seconds] : bench::categories(profile))
    report(of, "time_" + category, seconds * 1e3, "ms");
  report(of, "time_step", profile.total * 1e3, "ms");
  report(of, "instructions", static_cast<double>(profile.plan.instructions), "1");
  report(of, "layout_conversions", static_cast<double>(profile.plan.conversions), "1");
  report(of, "floating_point_operations", profile.plan.floating_point_operations, "FLOP");
}

void measure(const Case& of, const mox::ModelMeta& meta) {
  const auto rate = std::make_shared<bench::StepRateHook>(of.warm_up_steps, of.steps);
  const auto first = std::make_shared<FirstStepHook>();
  std::optional<Clock::time_point> model_fn_began;
  std::optional<bench::OutputToError> keep_clean;
  if (mox::get_flag<bool>("json")) keep_clean.emplace();
  mox::run_or_throw({.input_fn = [&](mox::ModeKeys) { return random_images(of, meta); },
                     .model_fn =
                         [&](const mox::Inputs& in, mox::ModeKeys mode) {
                           if (!model_fn_began) model_fn_began = Clock::now();
                           return training_spec(of.model, in, mode);
                         },
                     .optimizer_fn = momentum(),
                     .run_mode = mox::ModeKeys::TRAIN,
                     .batch_size = of.batch_size,
                     .max_number_of_steps = of.warm_up_steps + of.steps,
                     .log_every_n_steps = 0,
                     .hooks = {rate, first}});
  keep_clean.reset();
  report(of, "images_per_second", rate->samples_per_second(), "images/s");
  report(of, "seconds_to_first_step", mox::in_seconds(first->at() - *model_fn_began), "s");
  report(of, "peak_resident_memory", static_cast<double>(mox::peak_memory_bytes()) / (1 << 20), "MiB");
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("model", "resnet_v1_50",
                   "The network of the zoo to train, at the image size it was published for.");
  mox::define_flag("steps", 10, "Steps that are timed.");
  mox::define_flag("warm_up_steps", 2, "Steps before the clock starts.");
  mox::define_flag("devices", 1,
                   "Devices of this process, each with a batch of its own; --num_devices says the same.");
  mox::define_flag("json", false, "Print one JSON object a line.");
  mox::define_flag("profile", false, "Tell where the time of a step goes, instead of the rate.");
  mox::init(argc, argv);
  try {
    if (mox::option_origin("devices") != "default")
      mox::set_flag("num_devices", mox::get_flag<int64_t>("devices"));
    Case of{.name = {},
            .model = mox::flag("model"),
            .precision = mox::flag("precision"),
            .batch_size =
                mox::option_origin("batch_size") == "default" ? 16 : mox::get_flag<int64_t>("batch_size"),
            .steps = mox::get_flag<int64_t>("steps"),
            .warm_up_steps = mox::get_flag<int64_t>("warm_up_steps")};
    if (of.batch_size < 1 || of.steps < 1 || of.warm_up_steps < 1)
      throw mox::InvalidArgument("batch_size, steps and warm_up_steps must be at least 1");
    of.name = fmt::format("{}_{}_{}", of.model, of.batch_size, of.precision);
    const mox::ModelMeta meta = mox::get_model_meta(of.model);
    if (mox::get_flag<bool>("profile")) {
      profile(of, meta);
    } else {
      measure(of, meta);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return mox::internal::exit_status_of(error);
  }
  return 0;
}
