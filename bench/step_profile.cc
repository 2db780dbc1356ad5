#include "bench/step_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "moxing/model/variable_store.h"
#include "moxing/moxing.h"
#include "ops/fusion/default_rules.h"
#include "ops/gradients.h"
#include "runtime/base/seconds.h"
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
  ~Stopwatch() { sum_ += mox::seconds_since(start_); }
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

// The training graph: the loss is fetched, every trainable variable has a gradient, in the order in which the
// backward pass finishes them.
mox::PlanRequest build_training_graph(const mox::ModelFn& model_fn, const mox::Dataset& batches,
                                      mox::Graph& graph) {
  std::vector<mox::Tensor> components;
  for (const mox::TensorType& type : batches.signature())
    components.push_back(
        graph.input(static_cast<int>(components.size()), type, mox::SourceLocation::current()));
  const mox::ModelSpec spec = model_fn(mox::Inputs(std::move(components)), mox::ModeKeys::TRAIN);
  mox::PlanRequest request;
  request.fetches = {spec.loss};
  request.after_step_values = graph.after_step_values();
  const std::vector<mox::Tensor> targets = mox::get_collection("trainable_variables");
  const std::vector<mox::Tensor> found = mox::gradients(spec.loss, targets);
  for (size_t i = 0; i < found.size(); ++i) request.gradients.push_back({targets[i], found[i]});
  std::ranges::stable_sort(request.gradients, {},
                           [](const mox::GradientOutput& g) { return g.gradient.node()->id; });
  return request;
}

// The optimizer's updates of one step, whole gradients or parts.
class Updates : public mox::GradientPartListener {
 public:
  Updates(const mox::Optimizer& optimizer, std::vector<Parameter>& parameters, int64_t step)
      : optimizer_(optimizer), parameters_(parameters), step_(step) {}

  void apply(size_t index, int64_t first, std::span<const float> gradient, const mox::Team& team) const {
    Parameter& parameter = parameters_[index];
    const auto part = [&](std::span<float> whole) { return whole.subspan(first, gradient.size()); };
    std::array<std::span<float>, 4> slots;
    for (size_t i = 0; i < parameter.slot_spans.size(); ++i) slots.at(i) = part(parameter.slot_spans[i]);
    optimizer_.apply({.name = parameter.name,
                      .value = part(parameter.value.values<float>()),
                      .gradient = gradient,
                      .slots = std::span(slots).first(parameter.slot_spans.size()),
                      .learning_rate = optimizer_.learning_rate(step_, 0),
                      .step = step_ + 1,
                      .weight_decay = parameter.settings.weight_decay},
                     team);
  }
  void expect(size_t index, int64_t first, int64_t count) const override {
    const auto fetch = [&](std::span<const float> values) {
      for (int64_t i = 0; i < count; i += 16) __builtin_prefetch(values.data() + first + i, 1, 2);
    };
    fetch(std::as_const(parameters_[index].value).values<float>());
    for (std::span<float> slot : parameters_[index].slot_spans) fetch(slot);
  }
  void take(size_t index, int64_t first, std::span<const float> gradient) const override {
    apply(index, first, gradient, mox::Team(1));
  }

 private:
  const mox::Optimizer& optimizer_;
  std::vector<Parameter>& parameters_;
  int64_t step_;
};

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
  const std::unique_ptr<mox::Optimizer> optimizer = optimizer_fn();
  const auto plan = mox::Plan::compile(graph, request,
                                       {.rules = mox::default_rules(options.rules),
                                        .convert = mox::convert_layout,
                                        .hints = kernel_hints(options.rules),
                                        .gradients_in_parts = optimizer->is_elementwise()},
                                       team);
  mox::PlanInstance instance(plan, team, [&](std::string_view name) { return store.get(name); });
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
      const mox::StepInputs inputs{.components = batch.components, .seed = options.seed, .step = step};
      const Updates updates(*optimizer, parameters, step);
      const auto whole = [&](size_t index) {
        const Stopwatch of_update(parameters[index].seconds);
        updates.apply(index, 0, instance.gradient(index).values<float>(), team);
      };
      if (optimizer->is_elementwise())
        instance.run(inputs, whole, updates);
      else
        instance.run(inputs, whole);
      instance.take_after_step_values();
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
