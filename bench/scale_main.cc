// build/bin/bench_scale --model=resnet_v1_50|mlp [--batch_size=16] [--steps=N] [--json]
//
// Our side of ./dev bench scale: trains a network of the zoo, or four dense layers of 4096 (much to send for
// little to compute), on one batch of random numbers, and reports the samples a second of the whole job.
// Placement is that of every run:
// --num_devices, --threads, mpirun.
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "bench/json_line.h"
#include "bench/output_to_error.h"
#include "bench/step_rate_hook.h"
#include "models/zoo/zoo.h"
#include "runtime/job/job.h"

namespace {

constexpr int64_t kWidth = 4096;
constexpr int64_t kClasses = 1000;

struct Case {
  std::string model;
  int64_t batch_size, steps, warm_up_steps;
};

bool is_mlp(const Case& of) { return of.model == "mlp"; }

mox::Dataset random_samples(const Case& of) {
  mox::Shape shape{of.batch_size, kWidth};
  int64_t classes = kClasses;
  if (!is_mlp(of)) {
    const mox::ModelMeta meta = mox::get_model_meta(of.model);
    shape = mox::Shape{of.batch_size, meta.channels, meta.image_size, meta.image_size};
    classes = meta.num_classes;
  }
  mox::Array samples(mox::DType::kFloat32, shape), labels(mox::DType::kInt64, {of.batch_size});
  uint32_t state = 1;
  const auto next = [&state] { return (state = state * 1664525 + 1013904223) >> 8; };
  for (float& value : samples.values<float>()) value = static_cast<float>(next()) / (1 << 23) - 1.0F;
  for (int64_t& label : labels.values<int64_t>()) label = next() % classes;
  return mox::Dataset::from_arrays({samples, labels}).repeat();
}

mox::Tensor logits_of(const Case& of, const mox::Tensor& samples, mox::ModeKeys mode) {
  if (!is_mlp(of)) return mox::get_model_fn(of.model)(samples, mode).logits;
  mox::Tensor x = samples;
  for (int layer = 0; layer < 4; ++layer)
    x = mox::layers::dense(x, kWidth, {.name = fmt::format("dense{}", layer), .activation = mox::relu});
  return mox::layers::dense(x, kClasses, {.name = "logits"});
}

// Samples a second of all ranks together.
double measure(const Case& of) {
  const auto rate = std::make_shared<bench::StepRateHook>(of.warm_up_steps, of.steps);
  int64_t samples = 0;
  class SamplesHook : public mox::Hook {
   public:
    explicit SamplesHook(int64_t* samples) : samples_(samples) {}
    void after_run(mox::Session&, const mox::StepResult& result) override { *samples_ = result.samples(); }

   private:
    int64_t* samples_;
  };
  std::optional<bench::OutputToError> keep_clean;
  if (mox::get_flag<bool>("json")) keep_clean.emplace();
  mox::run_or_throw(
      {.input_fn = [&](mox::ModeKeys) { return random_samples(of); },
       .model_fn = [&](const mox::Inputs& in, mox::ModeKeys mode) -> mox::ModelSpec {
         auto [x, y] = in.take<2>();
         return {.loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits_of(of, x, mode), y))};
       },
       .optimizer_fn = mox::get_optimizer_fn("momentum", {.learning_rate = 0.001, .momentum = 0.9}),
       .run_mode = mox::ModeKeys::TRAIN,
       .batch_size = of.batch_size,
       .max_number_of_steps = of.warm_up_steps + of.steps,
       .log_every_n_steps = 0,
       .hooks = {rate, std::make_shared<SamplesHook>(&samples)}});
  return rate->steps_per_second() * static_cast<double>(samples);
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("model", "resnet_v1_50",
                   "The network of the zoo to train, or mlp: four dense layers of 4096.");
  mox::define_flag("steps", 6, "Steps that are timed.");
  mox::define_flag("warm_up_steps", 2, "Steps before the clock starts.");
  mox::define_flag("json", false, "Print one JSON object a line.");
  mox::init(argc, argv);
  try {
    const Case of{.model = mox::flag("model"),
                  .batch_size = mox::option_origin("batch_size") == "default"
                                    ? 16
                                    : mox::get_flag<int64_t>("batch_size"),
                  .steps = mox::get_flag<int64_t>("steps"),
                  .warm_up_steps = mox::get_flag<int64_t>("warm_up_steps")};
    if (of.batch_size < 1 || of.steps < 1 || of.warm_up_steps < 1)
      throw mox::InvalidArgument("batch_size, steps and warm_up_steps must be at least 1");
    const double rate = measure(of);
    if (mox::rank() != 0) return 0;
    const std::string name = fmt::format("{}_{}", of.model, of.batch_size);
    if (mox::get_flag<bool>("json")) {
      bench::print_json_line({.bench = "scale",
                              .name = name,
                              .metric = "samples_per_second",
                              .value = rate,
                              .unit = "samples/s"});
    } else {
      fmt::print("{}: {:.4g} samples/s\n", name, rate);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return mox::internal::exit_status_of(error);
  }
  return 0;
}
