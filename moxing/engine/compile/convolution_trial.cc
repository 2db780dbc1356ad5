#include "moxing/engine/compile/convolution_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/convolution/conv2d.h"
#include "ops/convolution/convolution.h"
#include "ops/convolution/winograd/winograd.h"
#include "ops/gradients.h"
#include "ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/random.h"
#include "runtime/exec/plan_instance.h"
#include "runtime/interruption/interruption.h"
#include "runtime/refusals/team_threads.h"

namespace mox::internal {
namespace {

// One of a class: what networks have of so many channels, and enough images for Winograd's method to pay.
struct Sample {
  int64_t batch, channels, size;
  int64_t window = 3, stride = 1;

  ConvolutionOptions options() const {
    return {.strides = {stride, stride}, .padding = Padding::of((window - 1) / 2)};
  }
  Shape image() const { return {batch, channels, size, size}; }
  // Where networks halve an image they double its channels.
  Shape filter() const { return {stride * channels, channels, window, window}; }
};
constexpr std::array<Sample, 12> kSamples = {{{16, 16, 32},
                                              {16, 32, 32},
                                              {4, 64, 56},
                                              {4, 128, 28},
                                              {8, 256, 14},
                                              {16, 512, 7},
                                              {16, 16, 16, 5},
                                              {16, 32, 16, 5},
                                              {16, 64, 16, 5},
                                              {16, 16, 32, 3, 2},
                                              {16, 32, 16, 3, 2},
                                              {4, 64, 56, 3, 2}}};
constexpr int kTurns = 4;
constexpr double kClearlyFaster = 0.9;

using Seconds = std::array<double, 3>;  // by ConvolutionResult

ConvolutionResult result_of(std::string_view op) {
  if (op == "conv2d_input_gradient") return ConvolutionResult::kInputGradient;
  return op == "conv2d_filter_gradient" ? ConvolutionResult::kFilterGradient : ConvolutionResult::kOutput;
}

// A convolution and its gradients as a training computes them, in one way.
class Trial {
 public:
  Trial(const Sample& sample, const RuleOptions& rules, const Team& team) {
    Graph graph;
    const GraphScope scope(graph);
    std::vector<Tensor> in;
    const auto add_input = [&](const Shape& shape) {
      inputs_.emplace_back(DType::kFloat32, shape);
      RandomStream(inputs_.size(), 0).fill_uniform(inputs_.back().values<float>(), 0, 0.5f, 1.5f);
      in.push_back(
          graph.input(static_cast<int>(in.size()), inputs_.back().type(), SourceLocation::current()));
    };
    add_input(sample.image());
    add_input(sample.filter());
    const Tensor y = conv2d(in[0], in[1], sample.options());
    add_input(y.shape());
    std::vector<Tensor> fetches = {reduce_sum(y)};
    for (const Tensor& gradient : gradients(reduce_sum(y * in[2]), std::span(in).first(2)))
      fetches.push_back(gradient);
    const auto plan = Plan::compile(
        graph, {.fetches = fetches, .gradients = {}, .after_step_values = {}},
        {.rules = default_rules(rules), .convert = convert_layout, .hints = kernel_hints(rules)}, team);
    instance_ = std::make_unique<PlanInstance>(plan, team, [](std::string_view) { return Array(); });
    run();  // memory is given to what is written first
    instance_->set_profiling(true);
    least_.fill(std::numeric_limits<double>::infinity());
  }

  void take_turn() {
    throw_if_interrupted();
    run();
    ++runs_;
    Seconds total{};
    for (const KernelTime& time : instance_->profile())  // means: conversions are not between layers
      if (!time.is_conversion && time.op.starts_with("conv2d"))
        total[static_cast<size_t>(result_of(time.op))] += time.seconds * runs_;
    for (size_t i = 0; i < least_.size(); ++i) least_[i] = std::min(least_[i], total[i] - before_[i]);
    before_ = total;
  }
  const Seconds& least() const { return least_; }

 private:
  void run() { instance_->run({.components = inputs_}); }

  std::vector<Array> inputs_;
  std::unique_ptr<PlanInstance> instance_;
  int runs_ = 0;
  Seconds least_{}, before_{};
};

// "precision fp32, conv_algorithm measured [...]": what stands between the brackets.
std::optional<ConvolutionClasses> classes_in(std::string_view description) {
  const std::string_view begin = "conv_algorithm measured [";
  const size_t at = description.find(begin);
  if (at == std::string_view::npos) return std::nullopt;
  description.remove_prefix(at + begin.size());
  return convolution_classes_from_string(description.substr(0, description.find(']')));
}

}  // namespace

ConvolutionClasses measured_direct_classes(Precision precision, const Team& team) {
  const EnteredTeam entered(team);
  start_team(team);
  const DType dtype = precision == Precision::kBFloat16 ? DType::kBFloat16 : DType::kFloat32;
  ConvolutionClasses classes;
  for (const Sample& sample : kSamples) {
    const ConvolutionGeometry geometry = resolve_convolution(
        convolution_attributes(sample.options()), {dtype, sample.image()}, {dtype, sample.filter()});
    if (!winograd_pays(geometry)) continue;
    Trial winograd(sample, {.precision = precision}, team);
    Trial direct(sample, {.precision = precision, .direct_convolutions = true}, team);
    for (int turn = 0; turn < kTurns; ++turn) {
      (turn % 2 == 0 ? winograd : direct).take_turn();
      (turn % 2 == 0 ? direct : winograd).take_turn();
    }
    for (size_t i = 0; i < winograd.least().size(); ++i)
      if (direct.least()[i] < kClearlyFaster * winograd.least()[i])
        classes.insert(class_of(geometry, static_cast<ConvolutionResult>(i)));
  }
  return classes;
}

ConvolutionClasses settled_direct_classes(Communicator& ranks, Precision precision, std::string_view kept,
                                          int threads) {
  std::string chosen;
  if (ranks.rank() == 0) {
    const auto before = classes_in(kept);
    chosen = to_string(before ? *before : measured_direct_classes(precision, Team(threads)));
    log_info(
        fmt::format("conv_algorithm measured{}: of the classes of convolutions that Winograd's method may "
                    "compute, these sum directly: {}",
                    before ? ", as before" : "", chosen));
  }
  const auto classes = convolution_classes_from_string(ranks.broadcast_text(chosen));
  MOX_ASSERT(classes.has_value(), "to_string's text is read back");
  return *classes;
}

}  // namespace mox::internal
