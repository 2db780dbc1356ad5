#include "tests/support/gradient_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/arithmetic/arithmetic.h"
#include "ops/gradients.h"
#include "ops/reduction/reduction.h"
#include "runtime/exec/plan_instance.h"

namespace mox::test {
namespace {

// A compiled graph that is run many times.
class Runner {
 public:
  Runner(const Graph& graph, const std::vector<Tensor>& fetches, const CompileOptions& options)
      : instance_(Plan::compile(graph, {.fetches = fetches, .gradients = {}, .after_step_values = {}},
                                options, team_),
                  team_, [](std::string_view) { return Array(); }) {}

  const Array& run(const std::vector<Array>& inputs, uint64_t seed, size_t fetch) {
    instance_.run({.components = inputs, .seed = seed, .step = 0});
    return instance_.fetched(fetch);
  }

 private:
  Team team_{1};
  PlanInstance instance_;
};

double weighted_sum(const Array& y, const Array& weights) {
  double sum = 0;
  for (int64_t i = 0; i < y.elements(); ++i)
    sum += static_cast<double>(y.values<float>()[i]) * static_cast<double>(weights.values<float>()[i]);
  return sum;
}

}  // namespace

void check_gradients(const Build& build, const std::vector<Array>& inputs,
                     const GradientCheckOptions& options) {
  Graph graph;
  GraphScope scope(graph);
  std::vector<Tensor> tensors;
  for (const Array& array : inputs)
    tensors.push_back(graph.input(static_cast<int>(tensors.size()), array.type(), SourceLocation::current()));
  const Tensor y = build(tensors);
  ASSERT_EQ(y.dtype(), DType::kFloat32) << "what is differentiated is float32";
  const Array weights = random_array(y.shape(), 77, 0.5f, 1.5f);
  const Tensor loss = reduce_sum(mul(y, graph.constant(weights, SourceLocation::current())));

  std::vector<Tensor> targets;
  std::vector<size_t> target_inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& constants = options.constant_inputs;
    if (inputs[i].dtype() != DType::kFloat32) continue;
    if (std::find(constants.begin(), constants.end(), static_cast<int>(i)) != constants.end()) continue;
    targets.push_back(tensors[i]);
    target_inputs.push_back(i);
  }
  const std::vector<Tensor> analytic = gradients(loss, targets);

  for (const bool with_rules : {true, false}) {
    const CompileOptions compile = with_rules ? compile_options() : compile_options_without_rules();
    Runner forward(graph, {y}, compile);
    for (size_t t = 0; t < targets.size(); ++t) {
      const Array& original = inputs[target_inputs[t]];
      Array numeric(DType::kFloat32, original.shape());
      for (int64_t e = 0; e < original.elements(); ++e) {
        const size_t element = static_cast<size_t>(e);
        auto value_at = [&](double offset) {
          std::vector<Array> moved = inputs;
          moved[target_inputs[t]] = original.clone();
          moved[target_inputs[t]].values<float>()[element] += static_cast<float>(offset);
          return weighted_sum(forward.run(moved, options.seed, 0), weights);
        };
        numeric.values<float>()[element] =
            static_cast<float>((value_at(options.step) - value_at(-options.step)) / (2 * options.step));
      }
      SCOPED_TRACE("the gradient for input " + std::to_string(target_inputs[t]) +
                   (with_rules ? " with rewrite rules" : " without rewrite rules"));
      Array computed(DType::kFloat32, original.shape());
      if (analytic[t].defined()) {
        Runner backward(graph, {analytic[t]}, compile);
        computed = backward.run(inputs, options.seed, 0).clone();
      }
      expect_close(computed, numeric, options.relative, options.absolute);
    }
  }
}

}  // namespace mox::test
