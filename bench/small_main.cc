// build/bin/bench_small --case=softmax|lenet [--batch_size=N] [--steps=N] [--json] [--profile]
//
// Our side of ./dev bench small: trains a case on Fashion-MNIST through mox::run and reports the rate of
// steps after a warm-up. --profile prints where the time of a step goes instead. --threads and --data_threads
// are those of every run.
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "bench/harness/threads_flag.h"
#include "bench/json_line.h"
#include "bench/output_to_error.h"
#include "bench/small_cases.h"
#include "bench/step_profile.h"
#include "bench/step_rate_hook.h"
#include "moxing/moxing.h"
#include "runtime/base/log.h"
#include "runtime/base/team.h"
#include "runtime/job/job.h"

namespace {

int64_t or_default(int64_t value, int64_t standard) { return value > 0 ? value : standard; }

// The case's own, unless the command line or a YAML file gives one.
int64_t batch_size_of(const bench::SmallCase& of) {
  return mox::option_origin("batch_size") == "default" ? of.batch_size : mox::get_flag<int64_t>("batch_size");
}

mox::Dataset training_data(const bench::SmallCase& of) {
  return mox::data::mnist(mox::flag("data_url"), "train", {.image_shape = of.image_shape})
      .shuffle(60000)
      .repeat();
}

int profile(const bench::SmallCase& of, int64_t batch_size, int64_t steps) {
  const auto data_threads = mox::get_flag<int>("data_threads");
  const bench::ProfileOptions options{.batch_size = batch_size,
                                      .warm_up_steps = steps / 10 + 1,
                                      .steps = steps,
                                      .threads = bench::threads_flag(),
                                      .data_threads = data_threads > 0 ? data_threads : 1,
                                      .seed = mox::get_flag<uint64_t>("seed")};
  fmt::print("{}",
             bench::describe(bench::profile_steps(of.model_fn, of.optimizer_fn, training_data(of), options),
                             options));
  return 0;
}

int measure(const bench::SmallCase& of, int64_t batch_size, int64_t steps) {
  const int64_t warm_up = steps / 10 + 1;
  const auto rate = std::make_shared<bench::StepRateHook>(warm_up, steps);
  const bool json = mox::get_flag<bool>("json");
  std::optional<bench::OutputToError> keep_clean;
  if (json) keep_clean.emplace();
  mox::run_or_throw({.input_fn = [&](mox::ModeKeys) { return training_data(of); },
                     .model_fn = of.model_fn,
                     .optimizer_fn = of.optimizer_fn,
                     .run_mode = mox::ModeKeys::TRAIN,
                     .batch_size = batch_size,
                     .max_number_of_steps = warm_up + steps,
                     .log_every_n_steps = 0,
                     .hooks = {rate}});
  keep_clean.reset();
  const double steps_per_second = rate->steps_per_second();
  const double operations = of.floating_point_operations_per_sample * static_cast<double>(batch_size);
  const std::string name = fmt::format("{}_{}", of.name, batch_size);
  if (json) {
    bench::print_json_line({.bench = "small",
                            .name = name,
                            .metric = "steps_per_second",
                            .value = steps_per_second,
                            .unit = "steps/s"});
    bench::print_json_line({.bench = "small",
                            .name = name,
                            .metric = "floating_point_operations_per_step",
                            .value = operations,
                            .unit = "FLOP"});
  } else {
    fmt::print("{}: {:.1f} steps/s, {:.1f} GFLOP/s\n", name, steps_per_second,
               steps_per_second * operations / 1e9);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("case", "lenet", "What to train: softmax or lenet.");
  mox::define_flag("steps", 0, "Steps that are timed, after a warm-up of a tenth. 0: the case's own.");
  mox::define_flag("json", false, "Print one JSON object a line.");
  mox::define_flag("profile", false,
                   "Print the plan and where the time of a step goes, instead of the rate.");
  mox::init(argc, argv);
  try {
    const bench::SmallCase of = bench::small_case(mox::flag("case"));
    const int64_t batch_size = batch_size_of(of);
    const int64_t steps = or_default(mox::get_flag<int64_t>("steps"), of.steps);
    return mox::get_flag<bool>("profile") ? profile(of, batch_size, steps) : measure(of, batch_size, steps);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return mox::internal::exit_status_of(error);
  }
}
