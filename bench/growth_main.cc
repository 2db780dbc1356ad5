// build/bin/bench_growth [--json]: how time and memory grow with a model.
//
// Perceptrons of 100 to 16,000 layers without names: the time to build the training graph, to compile it, and
// the peak of the process's memory so far. Each row is one model in a process that has made the smaller ones.
#include <fmt/format.h>
#include <moxing/moxing.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "bench/json_line.h"
#include "moxing/engine/compile/compiled_model.h"
#include "runtime/base/team.h"

namespace {

using Clock = std::chrono::steady_clock;

double mebibytes_so_far() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void measure(int layers, double& previous_seconds, int previous_layers, bool json) {
  const mox::Team team(1);
  const mox::EnteredTeam entered(team);
  mox::VariableStore store(1);
  double built_seconds = 0;
  const auto begin = Clock::now();
  mox::internal::ModelCompiler compiler(
      [&](const mox::Inputs& in, mox::ModeKeys) {
        const auto before = Clock::now();
        mox::Tensor x = in[0];
        for (int i = 0; i < layers; ++i) x = mox::relu(mox::layers::dense(x, 4));
        mox::ModelSpec spec{.loss = mox::reduce_mean(mox::square(x))};
        built_seconds = std::chrono::duration<double>(Clock::now() - before).count();
        return spec;
      },
      mox::ModeKeys::TRAIN, store, team, {});
  const mox::internal::CompiledModel& model =
      compiler.for_signature({mox::TensorType{mox::DType::kFloat32, {4, 4}}});
  const double whole = std::chrono::duration<double>(Clock::now() - begin).count();
  const size_t instructions = model.plan->statistics().instructions;
  const double exponent = previous_seconds > 0 ? std::log(whole / previous_seconds) /
                                                     std::log(static_cast<double>(layers) / previous_layers)
                                               : 0;
  previous_seconds = whole;
  if (json) {
    const std::string name = fmt::format("dense_{}", layers);
    bench::print_json_line({"growth", name, "build", built_seconds, "s"});
    bench::print_json_line({"growth", name, "compile", whole - built_seconds, "s"});
    bench::print_json_line({"growth", name, "peak_memory", mebibytes_so_far(), "MiB"});
    return;
  }
  fmt::print("{:>7} {:>13} {:>10.3f} {:>10.3f} {:>9.0f} {:>9.2f}\n", layers, instructions, built_seconds,
             whole - built_seconds, mebibytes_so_far(), exponent);
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  if (!json)
    fmt::print("{:>7} {:>13} {:>10} {:>10} {:>9} {:>9}\n", "layers", "instructions", "build s", "compile s",
               "peak MiB", "exponent");
  double previous_seconds = 0;
  int previous_layers = 1;
  for (const int layers : {100, 400, 1000, 4000, 16000}) {
    measure(layers, previous_seconds, previous_layers, json);
    previous_layers = layers;
  }
}
