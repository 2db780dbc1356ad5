#include "bench/step_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "moxing/moxing.h"
#include "moxing/variable_store.h"
#include "ops/gradients.h"
#include "ops/passes.h"
#include "runtime/data/pipeline.h"
#include "runtime/exec/plan.h"
#include "runtime/exec/plan_instance.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

// Adds the time of a scope to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  ~Stopwatch() { sum_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_;
  Clock::time_point start_ = Clock::now();
};

struct Parameter {
  std::string name;
  mox::Array value;
  std::vector<mox::Array> slots;
  std::vector<std::span<float>> slot_spans;
  mox::ParameterSettings settings;
  double seconds = 0;
};

Parameter make_parameter(const std::string& name, const mox::Optimizer& optimizer,
                         const mox::VariableStore& store) {
  Parameter parameter;
  parameter.name = name;
  parameter.value = store.get(name);
  parameter.settings = optimizer.parameter_settings(name, parameter.value.shape());
  for (const mox::SlotSpec& spec : optimizer.slots()) {
    parameter.slots.emplace_back(parameter.value.type());
    parameter.slot_spans.push_back(parameter.slots.back().values<float>());
    std::ranges::fill(parameter.slot_spans.back(), spec.initial_value);
  }
  return parameter;
}

// The training graph: the loss is fetched, every trainable variable has a gradient, in the order in which the backward
// pass finishes them.
mox::PlanRequest build_training_graph(const mox::ModelFn& model_fn, const mox::Dataset& batches,
                                      mox::Graph& graph) {
  std::vector<mox::Tensor> components;
  for (const mox::TensorType& type : batches.signature())
    components.push_back(
        graph.input(static_cast<int>(components.size()), type, mox::SourceLocation::current()));
  const mox::ModelSpec spec = model_fn(mox::Inputs(std::move(components)), mox::ModeKeys::TRAIN);
  mox::PlanRequest request;
  request.fetches = {spec.loss};
  request.updates = graph.updates();
  const std::vector<mox::Tensor> targets = mox::get_collection("trainable_variables");
  const std::vector<mox::Tensor> found = mox::gradients(spec.loss, targets);
  for (size_t i = 0; i < found.size(); ++i) request.gradients.push_back({targets[i], found[i]});
  std::ranges::stable_sort(request.gradients, {},
                           [](const mox::GradientOutput& g) { return g.gradient.node()->id; });
  return request;
}

}  // namespace

double StepProfile::kernel_seconds() const {
  double sum = 0;
  for (const mox::KernelTime& kernel : kernels) sum += kernel.seconds;
  return sum;
}

double StepProfile::update_seconds() const {
  double sum = 0;
  for (const auto& [name, seconds] : updates) sum += seconds;
  return sum;
}

StepProfile profile_steps(const mox::ModelFn& model_fn, const mox::OptimizerFn& optimizer_fn,
                          const mox::Dataset& data, const ProfileOptions& options) {
  const mox::Team team(options.threads);
  team.enter();
  const mox::Dataset batches = data.batch(options.batch_size);
  mox::Graph graph;
  const mox::GraphScope scope(graph);
  const mox::PlanRequest request = build_training_graph(model_fn, batches, graph);
  mox::VariableStore store(options.seed);
  store.declare(graph);
  const auto plan = mox::Plan::compile(
      graph, request, {.rules = mox::default_rules(options.precision), .convert = mox::convert_layout}, team);
  mox::PlanInstance instance(plan, team, [&](std::string_view name) { return store.get(name); });
  const std::unique_ptr<mox::Optimizer> optimizer = optimizer_fn();
  std::vector<Parameter> parameters;
  for (const mox::GradientOutput& gradient : request.gradients)
    parameters.push_back(make_parameter(graph.spec(gradient.variable).name, *optimizer, store));

  mox::Pipeline pipeline(batches, {.seed = options.seed, .threads = options.data_threads});
  double total = 0, waiting = 0;
  int64_t step = 0;
  const auto train = [&](int64_t steps) {
    const Stopwatch of_all(total);
    for (int64_t last = step + steps; step < last; ++step) {
      mox::Batch batch;
      {
        const Stopwatch of_data(waiting);
        if (!pipeline.next(&batch))
          throw mox::FailedPrecondition("the data of a profile must not end; repeat it");
      }
      instance.run({.components = batch.components, .seed = options.seed, .step = step}, [&](size_t index) {
        Parameter& parameter = parameters[index];
        const Stopwatch of_update(parameter.seconds);
        optimizer->apply({.name = parameter.name,
                          .value = parameter.value.values<float>(),
                          .gradient = instance.gradient(index).values<float>(),
                          .slots = parameter.slot_spans,
                          .learning_rate = optimizer->learning_rate(step, 0),
                          .step = step + 1,
                          .weight_decay = parameter.settings.weight_decay},
                         team);
      });
      instance.apply_updates();
    }
  };
  train(options.warm_up_steps);
  total = waiting = 0;
  for (Parameter& parameter : parameters) parameter.seconds = 0;
  instance.set_profiling(true);
  train(options.steps);

  const double steps = static_cast<double>(options.steps);
  StepProfile profile{.kernels = instance.profile(),
                      .updates = {},
                      .waiting = waiting / steps,
                      .total = total / steps,
                      .plan = plan->statistics(),
                      .plan_text = plan->describe(),
                      .kernel_text = instance.describe_profile()};
  for (const Parameter& parameter : parameters)
    profile.updates.emplace_back(parameter.name, parameter.seconds / steps);
  return profile;
}

std::string describe(const StepProfile& profile, const ProfileOptions& options) {
  std::string text = profile.plan_text + '\n' + profile.kernel_text + '\n';
  const auto line = [&](double seconds, const std::string& what) {
    text += fmt::format("{:>10.1f} µs {:>6.1f} %  {}\n", seconds * 1e6, 100 * seconds / profile.total, what);
  };
  line(profile.waiting, "waiting for a batch");
  line(profile.kernel_seconds(), "kernels of the plan");
  line(profile.update_seconds(), "updates of variables, of these:");
  for (const auto& [name, seconds] : profile.updates) line(seconds, "  " + name);
  line(profile.overhead() - profile.waiting, "the rest");
  text += fmt::format("{:>10.1f} µs a step: {:.1f} steps/s, {} compute and {} data threads\n",
                      profile.total * 1e6, 1 / profile.total, options.threads, options.data_threads);
  return text;
}

}  // namespace bench
