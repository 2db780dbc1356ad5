// build/bin/bench_predict [--json]: what mox::Predictor takes beyond the kernels of one image.
//
// Each call of Predictor::predict is followed by a run of the same compiled plan alone; both in medians over
// many turns, on one thread.
#include <fmt/format.h>
#include <models/zoo/zoo.h>
#include <moxing/moxing.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/json_line.h"
#include "moxing/engine/compile/compiled_model.h"
#include "runtime/base/team.h"

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_of(const auto& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

mox::ModelFn model_of(const std::string& network) {
  return [network](const mox::Inputs& in, mox::ModeKeys mode) {
    return mox::ModelSpec{
        .output_info = {{"probabilities", mox::get_model_fn(network)(in[0], mode).end_point("predictions")}}};
  };
}

void compare(const std::string& network, int turns, bool json) {
  const mox::ModelMeta meta = mox::get_model_meta(network);
  const mox::Array image(mox::DType::kFloat32, {1, meta.channels, meta.image_size, meta.image_size});
  const mox::Team team(1);
  const mox::EnteredTeam entered(team);
  mox::Communicator alone;
  mox::VariableStore store(1);
  mox::internal::ModelCompiler compiler(model_of(network), mox::ModeKeys::PREDICT, store, team,
                                        mox::internal::settle_arithmetic(alone, {}, {}, false));
  mox::internal::CompiledModel& model = compiler.for_signature({image.type()});
  const std::string directory =
      (std::filesystem::temp_directory_path() / fmt::format("bench_predict-{}", ::getpid())).string();
  mox::Checkpoint checkpoint;
  checkpoint.global_step = 1;
  checkpoint.variables = store.all();
  mox::save_checkpoint(directory, checkpoint);
  const mox::Predictor predictor(directory, model_of(network));
  std::filesystem::remove_all(directory);

  const std::vector<mox::Array> batch = {image};
  std::vector<double> whole, kernels;
  for (int turn = 0; turn < turns; ++turn) {
    whole.push_back(microseconds_of([&] { predictor.predict(batch); }));
    kernels.push_back(microseconds_of([&] { model.instance->run({.components = batch}); }));
  }
  const double ours = median(whole), alone_us = median(kernels);
  if (json)
    bench::print_json_line({.bench = "predict",
                            .name = network,
                            .metric = "latency",
                            .value = ours,
                            .unit = "us",
                            .peer = "the plan alone",
                            .peer_value = alone_us,
                            .ratio = ours / alone_us});
  else
    std::printf("%-16s predict %10.1f us, its kernels %10.1f us, beyond them %6.1f us\n", network.c_str(),
                ours, alone_us, ours - alone_us);
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    std::fprintf(stderr, "usage: bench_predict [--json]\n");
    return 2;
  }
  compare("lenet", 4001, json);
  compare("cifarnet", 2001, json);
  compare("resnet_v1_20", 501, json);
  compare("resnet_v1_18", 51, json);
  return 0;
}
