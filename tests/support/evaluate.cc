#include "tests/support/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <string>

#include "ops/fusion/default_rules.h"
#include "runtime/base/random.h"

namespace mox::test {
namespace {

double element(const Array& array, int64_t i) {
  const Array one = array.reshaped({array.elements()}).rows(i, i + 1);
  return one.item();
}

// Whether the sum of a filter's gradient is cut by the number of threads in this plan (docs/determinism.md).
bool has_filter_gradient_by_threads(const Graph& graph, std::span<const Tensor> fetches) {
  const Team team(1);
  team.enter();
  const auto plan = Plan::compile(
      graph, {.fetches = {fetches.begin(), fetches.end()}, .gradients = {}, .after_step_values = {}},
      compile_options(), team);
  std::istringstream lines(plan->describe());
  for (std::string line; std::getline(lines, line);)
    if (line.find(" conv2d_filter_gradient ") != std::string::npos && line.find(" * ") != std::string::npos)
      return true;
  return false;
}

bool is_filter_gradient(const Tensor& tensor) { return tensor.node()->op->name == "conv2d_filter_gradient"; }

}  // namespace

CompileOptions compile_options() { return {.rules = default_rules(), .convert = convert_layout}; }
CompileOptions compile_options_without_rules() { return {.rules = {}, .convert = convert_layout}; }

std::vector<Array> run_graph(std::span<const Tensor> fetches, std::span<const Array> inputs,
                             EvaluateOptions options) {
  options.compile = compile_options();
  return mox::evaluate(fetches, inputs, options);
}

Array run_graph(const Tensor& fetch, std::span<const Array> inputs, EvaluateOptions options) {
  return run_graph(std::span(&fetch, 1), inputs, std::move(options))[0];
}

std::vector<Array> evaluate_ops(const BuildMany& build, const std::vector<Array>& inputs, double absolute) {
  Graph graph;
  GraphScope scope(graph);
  std::vector<Tensor> tensors;
  for (const Array& array : inputs)
    tensors.push_back(graph.input(static_cast<int>(tensors.size()), array.type(), SourceLocation::current()));
  const std::vector<Tensor> fetches = build(tensors);
  std::vector<Array> results = run_graph(fetches, inputs);
  const std::vector<Array> on_three_threads = run_graph(fetches, inputs, {.threads = 3});
  const std::vector<Array> without_rules =
      mox::evaluate(fetches, inputs, {.compile = compile_options_without_rules()});
  const bool sums_are_cut =
      std::ranges::any_of(fetches, is_filter_gradient) && has_filter_gradient_by_threads(graph, fetches);
  for (size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i) + ": " + to_string(fetches[i]));
    EXPECT_EQ(results[i].type(), fetches[i].type());
    if (sums_are_cut && is_filter_gradient(fetches[i]))
      expect_close(results[i], on_three_threads[i], 1e-4, absolute);
    else
      EXPECT_EQ(std::memcmp(results[i].data(), on_three_threads[i].data(), results[i].bytes()), 0)
          << "the bits depend on the number of threads";
    SCOPED_TRACE("with and without rewrite rules");
    expect_close(results[i], without_rules[i], 1e-4, absolute);
  }
  return results;
}

Array evaluate_op(const Build& build, const std::vector<Array>& inputs) {
  return evaluate_ops([&](std::span<const Tensor> tensors) { return std::vector{build(tensors)}; },
                      inputs)[0];
}

Array random_array(const Shape& shape, uint64_t seed, float low, float high) {
  Array array(DType::kFloat32, shape);
  RandomStream(seed, stable_hash("random_array")).fill_uniform(array.values<float>(), 0, low, high);
  return array;
}

void expect_close(const Array& actual, const Array& expected, double relative, double absolute) {
  ASSERT_EQ(to_string(actual.type()), to_string(expected.type()));
  int64_t wrong = 0;
  std::string first;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = element(actual, i), e = element(expected, i);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    // Beside an infinity every number would be near enough.
    if (std::isfinite(e) && std::abs(a - e) <= absolute + relative * std::abs(e)) continue;
    if (wrong++ == 0)
      first = "element " + std::to_string(i) + ": " + std::to_string(a) + " instead of " + std::to_string(e);
  }
  EXPECT_EQ(wrong, 0) << wrong << " of " << expected.elements() << " elements of "
                      << to_string(expected.type()) << " are off; the first is " << first;
}

}  // namespace mox::test
