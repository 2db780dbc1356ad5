// build/bin/bench_ops [--ops=conv2d,...] [--seconds=0.3] [--threads=N] [--precision=fp32|bf16] [--json]
//                     [--choices] [--conv_algorithm=auto|direct|measured]
//
// Our side of ./dev bench ops: single ops and their gradients on one plan each, as a training compiles them:
// in the layouts that the kernels choose. Conversions between layouts are steps of their own and not counted.
// Prints milliseconds. --choices takes the convolutions instead for which a rule chooses between Winograd's
// method and the direct sum: those of the zoo, and ones with fewer tiles, for ./dev bench choices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/threads_flag.h"
#include "bench/json_line.h"
#include "moxing/engine/compile/convolution_trial.h"
#include "moxing/moxing.h"
#include "ops/fusion/default_rules.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/base/team.h"
#include "runtime/exec/plan_instance.h"
#include "runtime/job/job.h"

namespace {

using Tensors = std::vector<mox::Tensor>;

struct Case {
  std::string name;
  std::vector<mox::Shape> inputs;
  std::function<mox::Tensor(const Tensors& in)> build;
};

Case convolution(int64_t batch, int64_t channels, int64_t size, int64_t filters, int64_t kernel,
                 int64_t stride, int64_t groups = 1) {
  const mox::ConvolutionOptions options{
      .strides = {stride, stride}, .groups = groups, .padding = mox::Padding::of((kernel - 1) / 2)};
  return {fmt::format("conv2d_{}x{}x{}x{}_to_{}_{}x{}_stride{}{}", batch, channels, size, size, filters,
                      kernel, kernel, stride, groups > 1 ? fmt::format("_groups{}", groups) : ""),
          {{batch, channels, size, size}, {filters, channels / groups, kernel, kernel}},
          [options](const Tensors& in) { return mox::conv2d(in[0], in[1], options); }};
}

Case product(int64_t rows, int64_t inner, int64_t columns) {
  return {fmt::format("matmul_{}x{}x{}", rows, inner, columns),
          {{rows, inner}, {inner, columns}},
          [](const Tensors& in) { return mox::matmul(in[0], in[1]); }};
}

std::vector<Case> cases() {
  const mox::Shape image{16, 64, 56, 56};
  return {
      convolution(16, 3, 224, 64, 7, 2),
      convolution(16, 64, 56, 64, 3, 1),
      convolution(16, 64, 56, 256, 1, 1),
      convolution(16, 256, 56, 64, 1, 1),
      convolution(16, 128, 28, 128, 3, 1),
      convolution(16, 128, 56, 128, 3, 2),
      convolution(16, 256, 14, 256, 3, 1),
      convolution(16, 1024, 14, 256, 1, 1),
      convolution(16, 512, 7, 512, 3, 1),
      convolution(16, 96, 56, 96, 3, 1, 96),
      product(16, 2048, 1000),
      product(128, 3136, 1024),
      {"batch_norm_16x64x56x56",
       {image, {64}, {64}},
       [](const Tensors& in) { return mox::batch_norm(in[0], in[1], in[2]).y; }},
      {"max_pool_16x64x56x56_2x2", {image}, [](const Tensors& in) { return mox::max_pool(in[0]); }},
      {"relu_16x64x56x56", {image}, [](const Tensors& in) { return mox::relu(in[0]); }},
      {"softmax_256x1000", {{256, 1000}}, [](const Tensors& in) { return mox::softmax(in[0]); }},
  };
}

// Where winograd_pays decides. Batches of 16, but for small images; 512 channels of 7 x 7 have four tiles an
// image, and 64 tiles are the fewest.
std::vector<Case> choices() {
  std::vector<Case> result;
  for (const auto& [channels, size] : {std::pair(64, 56), {128, 28}, {256, 14}, {512, 7}})  // ResNet
    result.push_back(convolution(16, channels, size, channels, 3, 1));
  for (const auto& [channels, size] : {std::pair(64, 56), {128, 28}, {256, 14}})
    result.push_back(convolution(16, channels, size, 2 * channels, 3, 2));
  for (const auto& [channels, size] :
       {std::pair(64, 224), {128, 112}, {256, 56}, {512, 28}, {512, 14}})  // VGG
    result.push_back(convolution(16, channels, size, channels, 3, 1));
  for (const auto& [channels, size] : {std::pair(16, 32), {32, 16}, {64, 8}})  // ResNet-20
    result.push_back(convolution(128, channels, size, channels, 3, 1));
  for (const auto& [channels, size] : {std::pair(16, 32), {32, 16}})
    result.push_back(convolution(128, channels, size, 2 * channels, 3, 2));
  result.push_back(convolution(32, 32, 14, 64, 5, 1));  // LeNet
  result.push_back(convolution(8, 64, 16, 64, 5, 1));   // CifarNet
  for (const int64_t batch : {17, 24, 32}) result.push_back(convolution(batch, 512, 7, 512, 3, 1));
  for (const int64_t batch : {4, 5, 8}) result.push_back(convolution(batch, 256, 14, 256, 3, 1));
  return result;
}

// What stands before the first extent.
std::string_view op_of(const Case& of) {
  const std::string_view name = of.name;
  size_t end = name.find('_');
  while (name[end + 1] < '0' || name[end + 1] > '9') end = name.find('_', end + 1);
  return name.substr(0, end);
}

void require_ops(const std::string& wanted, const std::vector<Case>& all) {
  std::set<std::string> known;
  for (const Case& of : all) known.emplace(op_of(of));
  std::istringstream words(wanted);
  for (std::string word; std::getline(words, word, ',');)
    if (!known.contains(word))
      throw mox::InvalidArgument(
          fmt::format("ops: there is no case of '{}'; there are {}", word, fmt::join(known, ", ")));
}

// Milliseconds of each op of the case and its gradients: the least of several runs.
std::map<std::string, double> measure(const Case& of, const mox::RuleOptions& rules, const mox::Team& team) {
  mox::Graph graph;
  const mox::GraphScope scope(graph);
  std::vector<mox::Array> arrays;
  Tensors in;
  const auto add_input = [&](const mox::Shape& shape) {
    arrays.emplace_back(mox::DType::kFloat32, shape);
    mox::RandomStream(arrays.size(), 0).fill_uniform(arrays.back().values<float>(), 0, 0.5f, 1.5f);
    in.push_back(
        graph.input(static_cast<int>(in.size()), arrays.back().type(), mox::SourceLocation::current()));
  };
  for (const mox::Shape& shape : of.inputs) add_input(shape);
  const Tensors differentiated = in;
  const mox::Tensor y = of.build(in);
  add_input(y.shape());
  std::vector<mox::Tensor> fetches = {mox::reduce_sum(y)};
  if (op_of(of) != "matmul")  // whose gradients are ops of the same name
    for (const mox::Tensor& gradient : mox::gradients(mox::reduce_sum(y * in.back()), differentiated))
      fetches.push_back(gradient);
  else
    arrays.pop_back();
  const auto plan = mox::Plan::compile(
      graph, {.fetches = fetches, .gradients = {}, .after_step_values = {}},
      {.rules = mox::default_rules(rules), .convert = mox::convert_layout, .hints = mox::kernel_hints(rules)},
      team);
  std::map<std::string, double> best;
  double spent = 0;
  const double seconds = mox::get_flag<double>("seconds");
  mox::PlanInstance instance(plan, team, [](std::string_view) { return mox::Array(); });
  instance.run({.components = arrays});
  std::vector<double> before(plan->statistics().instructions, 0.0);
  instance.set_profiling(true);
  for (int64_t runs = 1; spent < seconds || runs <= 3; ++runs) {
    instance.run({.components = arrays});
    const std::vector<mox::KernelTime> times = instance.profile();
    std::map<std::string, double> sums;
    for (size_t step = 0; step < times.size(); ++step) {
      const double total = times[step].seconds * static_cast<double>(runs);  // the profile is a mean
      spent += total - before[step];
      const std::string_view of_case = op_of(of);
      if (!times[step].is_conversion && std::string_view(times[step].op).starts_with(of_case))
        sums[times[step].op] += total - before[step];
      before[step] = total;
    }
    for (const auto& [op, sum] : sums) {
      auto [entry, is_new] = best.try_emplace(op, sum);
      entry->second = std::min(entry->second, sum);
    }
  }
  if (best.empty())
    throw mox::FailedPrecondition(fmt::format("'{}' has no kernel of its own in its plan", of.name));
  for (auto& [op, time] : best) time *= 1e3;
  return best;
}

mox::RuleOptions rules_of_flags(const mox::Team& team) {
  mox::RuleOptions rules{
      .precision = mox::flag("precision") == "bf16" ? mox::Precision::kBFloat16 : mox::Precision::kFloat32,
      .direct_convolutions = mox::flag("conv_algorithm") == "direct"};
  if (mox::flag("conv_algorithm") == "measured")
    rules.direct_classes = mox::internal::measured_direct_classes(rules.precision, team);
  return rules;
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("ops", "",
                   "Only cases whose names begin with one of these, separated by commas. Empty: all.");
  mox::define_flag("seconds", 0.3, "About how long each case is repeated.");
  mox::define_flag("choices", false, "Time the convolutions for which there is a choice between algorithms.");
  mox::define_flag("json", false, "Print one JSON object a line.");
  mox::init(argc, argv);
  try {
    const std::string wanted = ',' + mox::flag("ops") + ',';
    const mox::Team team(bench::threads_flag());
    const mox::EnteredTeam entered(team);
    const std::vector<Case> all = mox::get_flag<bool>("choices") ? choices() : cases();
    require_ops(mox::flag("ops"), all);
    if (!(mox::get_flag<double>("seconds") >= 0))
      throw mox::InvalidArgument("seconds must be a number of at least 0");
    const mox::RuleOptions rules = rules_of_flags(team);
    for (const Case& of : all) {
      if (wanted != ",," && wanted.find(fmt::format(",{},", op_of(of))) == std::string::npos) continue;
      for (const auto& [op, milliseconds] : measure(of, rules, team)) {
        const std::string metric = op == op_of(of) ? "forward" : op.substr(op_of(of).size() + 1);
        if (mox::get_flag<bool>("json"))
          bench::print_json_line(
              {.bench = "ops", .name = of.name, .metric = metric, .value = milliseconds, .unit = "ms"});
        else
          fmt::print("{:<44} {:<18} {:>9.3f} ms\n", of.name, metric, milliseconds);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return mox::internal::exit_status_of(error);
  }
  return 0;
}
