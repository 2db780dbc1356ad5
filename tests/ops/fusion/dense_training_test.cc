// The products of a dense layer at training's sizes, which have kernels of their own, against plain sums.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <ostream>

#include "ops/ops.h"
#include "ops/processor/processor.h"
#include "runtime/base/error.h"
#include "runtime/exec/plan_instance.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

struct DenseCase {
  int64_t batch, in, out;
};

void PrintTo(const DenseCase& c, std::ostream* stream) {
  *stream << c.batch << " samples of " << c.in << " to " << c.out;
}

class DenseTrainingTest : public ::testing::TestWithParam<DenseCase> {};

// sum over k of a(i, k) * b(k, j) in double precision, beside the sum of the magnitudes.
template <typename A, typename B>
void expect_product(std::span<const float> y, int64_t rows, int64_t columns, int64_t terms, const A& a,
                    const B& b) {
  for (int64_t i = 0; i < rows; i += 1 + rows / 37)
    for (int64_t j = 0; j < columns; j += 1 + columns / 41) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < terms; ++k) {
        const double term = static_cast<double>(a(i, k)) * b(k, j);
        sum += term;
        magnitude += std::fabs(term);
      }
      ASSERT_NEAR(y[i * columns + j], sum, 1e-6 * magnitude + 1e-7) << i << ", " << j;
    }
}

Array product(const Array& x, const Array& w, const Array& bias, int threads, std::string* plan_text) {
  Graph graph;
  const GraphScope scope(graph);
  const SourceLocation here = SourceLocation::current();
  const Tensor y = bias_add(matmul(graph.input(0, x.type(), here), graph.input(1, w.type(), here)),
                            graph.input(2, bias.type(), here));
  const Team team(threads);
  team.enter();
  const auto plan = Plan::compile(graph, {.fetches = {y}, .gradients = {}, .after_step_values = {}},
                                  test::compile_options(), team);
  *plan_text = plan->describe();
  PlanInstance instance(plan, team, [](std::string_view) { return Array(); });
  const std::vector<Array> inputs = {x, w, bias};
  instance.run({.components = inputs});
  return instance.fetched(0).clone();
}

TEST_P(DenseTrainingTest, TheProductIsTheSumAndDoesNotDependOnTheTeam) {
  const int64_t batch = GetParam().batch, in = GetParam().in, out = GetParam().out;
  const Array x = test::random_array({batch, in}, 1), w = test::random_array({in, out}, 2),
              bias = test::random_array({out}, 3);
  std::string plan_text;
  const Array y = product(x, w, bias, 1, &plan_text);
  EXPECT_NE(plan_text.find(processor().lanes >= 16 ? "split:avx512_core" : "split:avx2"), std::string::npos)
      << plan_text;
  std::vector<float> without_bias(y.values<float>().begin(), y.values<float>().end());
  for (int64_t i = 0; i < batch * out; ++i) without_bias[i] -= bias.values<float>()[i % out];
  const auto xs = x.values<float>(), ws = w.values<float>();
  expect_product(
      without_bias, batch, out, in, [&](int64_t i, int64_t k) { return xs[i * in + k]; },
      [&](int64_t k, int64_t j) { return ws[k * out + j]; });
  for (int threads : {2, 3}) {
    const Array other = product(x, w, bias, threads, &plan_text);
    const auto bytes = y.as_bytes(), same = other.as_bytes();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), same.begin())) << threads << " threads";
  }
}

// Puts the parts of a gradient together.
class Collector : public GradientPartListener {
 public:
  explicit Collector(int64_t elements)
      : values(static_cast<size_t>(elements)), times(static_cast<size_t>(elements)) {}
  void expect(size_t index, int64_t first, int64_t count) const override {
    if (index != 0 || first < 0 || count <= 0 || first + count > static_cast<int64_t>(values.size())) ++wrong;
  }
  void take(size_t index, int64_t first, std::span<const float> part) const override {
    if (index != 0) ++wrong;
    for (size_t i = 0; i < part.size(); ++i) {
      values[static_cast<size_t>(first) + i] = part[i];
      ++times[static_cast<size_t>(first) + i];
    }
  }
  mutable std::vector<float> values;
  mutable std::vector<int> times;
  mutable std::atomic<int> wrong = 0;
};

TEST_P(DenseTrainingTest, TheWeightsGradientComesInPartsOnce) {
  const int64_t batch = GetParam().batch, in = GetParam().in, out = GetParam().out;
  const std::vector<Array> inputs = {test::random_array({batch, in}, 1), test::random_array({batch, out}, 2)};
  Graph graph;
  const GraphScope scope(graph);
  const SourceLocation here = SourceLocation::current();
  const TensorType weights{DType::kFloat32, {in, out}};
  const Tensor x = graph.input(0, inputs[0].type(), here), target = graph.input(1, inputs[1].type(), here);
  const Tensor w = graph.add_variable({.name = "w", .type = weights, .initial_value = {}, .where = here});
  const Tensor loss = reduce_sum(mul(matmul(x, w), target));
  const Tensor gradient = gradients(loss, std::vector<Tensor>{w})[0];
  const Array values = test::random_array({in, out}, 3);
  const auto run = [&](int threads, Collector* parts) {
    const Team team(threads);
    team.enter();
    CompileOptions options = test::compile_options();
    options.gradients_in_parts = parts != nullptr;
    const auto plan = Plan::compile(
        graph, {.fetches = {loss}, .gradients = {{w, gradient}}, .after_step_values = {}}, options, team);
    PlanInstance instance(plan, team, [&](std::string_view) -> const Array& { return values; });
    int whole = 0;
    const auto count = [&](size_t) { ++whole; };
    if (parts)
      instance.run({.components = inputs}, count, *parts);
    else
      instance.run({.components = inputs}, count);
    EXPECT_EQ(whole, parts ? 0 : 1) << plan->describe();
    EXPECT_EQ(instance.gradient(0).defined(), parts == nullptr);
    EXPECT_EQ(plan->statistics().gradient_bytes, parts ? 0 : weights.bytes());
    return parts ? Array() : instance.gradient(0).clone();
  };
  Collector one(in * out), three(in * out);
  run(1, &one);
  run(3, &three);
  EXPECT_EQ(one.wrong + three.wrong, 0);
  for (int times : three.times) ASSERT_EQ(times, 1);
  EXPECT_EQ(one.values, three.values);
  const auto xs = inputs[0].values<float>(), ts = inputs[1].values<float>();
  expect_product(
      one.values, in, out, batch, [&](int64_t i, int64_t k) { return xs[k * in + i]; },
      [&](int64_t k, int64_t j) { return ts[k * out + j]; });
  const Array whole = run(2, nullptr);
  for (size_t i = 0; i < one.values.size(); ++i) ASSERT_NEAR(one.values[i], whole.values<float>()[i], 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Shapes, DenseTrainingTest,
                         ::testing::Values(DenseCase{32, 1030, 1040}, DenseCase{1, 2048, 512},
                                           DenseCase{7, 529, 2032}, DenseCase{128, 700, 1536}));

// A gradient that something else reads as well, or whose variable is read later, is given whole.
TEST(GradientsInParts, AreOnlyThoseThatNothingElseReads) {
  Graph graph;
  const GraphScope scope(graph);
  const SourceLocation here = SourceLocation::current();
  const std::vector<Array> inputs = {test::random_array({8, 1024}, 1)};
  const Tensor x = graph.input(0, inputs[0].type(), here);
  const Tensor w = graph.add_variable(
      {.name = "w", .type = {DType::kFloat32, {1024, 512}}, .initial_value = {}, .where = here});
  const Tensor loss = reduce_sum(square(matmul(x, w)));
  const Tensor gradient = gradients(loss, std::vector<Tensor>{w})[0];
  const Team team(1);
  team.enter();
  CompileOptions options = test::compile_options();
  options.gradients_in_parts = true;
  const Array values = test::random_array({1024, 512}, 3);
  const auto plan = Plan::compile(
      graph,
      {.fetches = {reduce_sum(square(gradient))}, .gradients = {{w, gradient}}, .after_step_values = {}},
      options, team);
  PlanInstance instance(plan, team, [&](std::string_view) -> const Array& { return values; });
  const Collector parts(int64_t{1024} * 512);
  int whole = 0;
  instance.run(
      {.components = inputs}, [&](size_t) { ++whole; }, parts);
  EXPECT_EQ(whole, 1);
  EXPECT_TRUE(instance.gradient(0).defined());
}

}  // namespace
}  // namespace mox
