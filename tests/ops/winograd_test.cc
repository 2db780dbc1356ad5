// Winograd convolutions against the direct sum.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/conv2d.h"
#include "ops/conv2d_backprop_filter.h"
#include "ops/conv2d_backprop_input.h"
#include "ops/instruction_set.h"
#include "ops/ops.h"
#include "ops/passes.h"
#include "runtime/exec/plan_instance.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

struct WinogradCase {
  int64_t batch, in, out, height, width, window;
  Padding padding;
};

class WinogradTest : public ::testing::TestWithParam<WinogradCase> {};

struct WinogradResults {
  std::vector<Array> values;
  std::string plan;
};

// y (with a bias), dx and dw.
WinogradResults run(const WinogradCase& c, bool direct, int threads) {
  Graph graph;
  const GraphScope scope(graph);
  const SourceLocation here = SourceLocation::current();
  const std::vector<Array> inputs = {test::random_array({c.batch, c.in, c.height, c.width}, 1, -1, 1),
                                     test::random_array({c.out, c.in, c.window, c.window}, 2, -1, 1),
                                     test::random_array({c.out}, 3, -1, 1)};
  const Tensor x = graph.input(0, inputs[0].type(), here), w = graph.input(1, inputs[1].type(), here);
  const Conv2dOptions options{.padding = c.padding};
  const Tensor y = bias_add(conv2d(x, w, options), graph.input(2, inputs[2].type(), here));
  const Tensor dy = mul(y, 0.1f);
  const std::vector<Tensor> fetches = {y, conv2d_backprop_input(x.shape(), w, dy, options),
                                       conv2d_backprop_filter(x, w.shape(), dy, options)};
  const Team team(threads);
  team.enter();
  CompileOptions compile = test::compile_options();
  compile.direct_convolutions = direct;
  const auto plan = Plan::compile(graph, {.fetches = fetches, .gradients = {}, .updates = {}}, compile, team);
  PlanInstance instance(plan, team, [](std::string_view) { return Array(); });
  instance.run({.components = inputs});
  WinogradResults outcome{{}, plan->describe()};
  for (size_t i = 0; i < fetches.size(); ++i) outcome.values.push_back(instance.fetched(i).clone());
  return outcome;
}

TEST_P(WinogradTest, AgreesWithTheDirectSumAndDoesNotDependOnTheTeam) {
  const WinogradResults direct = run(GetParam(), true, 1), fast = run(GetParam(), false, 1),
                        shared = run(GetParam(), false, 3);
  EXPECT_EQ(direct.plan.find("winograd"), std::string::npos);
  size_t kernels = 0;
  for (size_t at = 0; (at = fast.plan.find("winograd", at)) != std::string::npos; ++at) ++kernels;
  if (instruction_set() < InstructionSet::kAvx512) {
    EXPECT_EQ(kernels, 0u);
  } else {
    EXPECT_EQ(kernels, 3u) << fast.plan;
  }
  // Of the largest value. Rounding grows with the number of channels that are added up.
  const double kBound = GetParam().in * GetParam().out > 128 * 128 ? 2e-5 : 1e-5;
  for (size_t v = 0; v < 3; ++v) {
    const auto expected = direct.values[v].values<float>(), given = fast.values[v].values<float>();
    double largest = 0, error = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      largest = std::max<double>(largest, std::fabs(expected[i]));
      error = std::max<double>(error, std::fabs(expected[i] - given[i]));
    }
    EXPECT_LT(error, kBound * largest) << "value " << v;
    const auto bytes = fast.values[v].as_bytes(), same = shared.values[v].as_bytes();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), same.begin())) << "value " << v;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradTest,
                         ::testing::Values(WinogradCase{8, 16, 32, 14, 14, 5, Padding::kSame},
                                           WinogradCase{5, 32, 48, 17, 23, 5, Padding::kValid},
                                           WinogradCase{16, 64, 16, 14, 13, 3, Padding::kSame},
                                           WinogradCase{9, 48, 80, 18, 18, 3, Padding::of(2, 0, 1, 2)},
                                           WinogradCase{4, 16, 64, 31, 29, 3, Padding::kValid},
                                           WinogradCase{3, 32, 32, 30, 30, 5, Padding::of(4, 3, 0, 1)},
                                           // Filters beyond a core's cache: one chunk of tiles, and several.
                                           WinogradCase{4, 144, 128, 14, 17, 3, Padding::kSame},
                                           WinogradCase{8, 192, 224, 27, 30, 3, Padding::of(2, 0, 1, 2)},
                                           WinogradCase{40, 272, 80, 5, 9, 3, Padding::kValid}));

// The gradient of the filter from bfloat16 images.
WinogradResults filter_gradient_in_bf16(const WinogradCase& c, int threads) {
  Graph graph;
  const GraphScope scope(graph);
  const SourceLocation here = SourceLocation::current();
  const std::vector<Array> inputs = {test::random_array({c.batch, c.in, c.height, c.width}, 1, -1, 1),
                                     test::random_array({c.batch, c.out, c.height, c.width}, 2, -1, 1)};
  const Tensor x = graph.input(0, inputs[0].type(), here), dy = graph.input(1, inputs[1].type(), here);
  const std::vector<Tensor> fetches = {
      conv2d_backprop_filter(x, {c.out, c.in, c.window, c.window}, dy, {.padding = c.padding})};
  const Team team(threads);
  team.enter();
  CompileOptions compile = test::compile_options();
  compile.rules = default_rules({.precision = Precision::kBFloat16});
  compile.convert = convert_layout;
  const auto plan = Plan::compile(graph, {.fetches = fetches, .gradients = {}, .updates = {}}, compile, team);
  PlanInstance instance(plan, team, [](std::string_view) { return Array(); });
  instance.run({.components = inputs});
  return {{instance.fetched(0).clone()}, plan->describe()};
}

TEST(WinogradInBf16Test, TheFiltersGradientAgreesWithTheDirectSum) {
  if (instruction_set() < InstructionSet::kAvx512) GTEST_SKIP() << "Winograd's kernels need AVX-512";
  const WinogradCase c{6, 80, 96, 13, 18, 3, Padding::kSame};
  const WinogradResults fast = filter_gradient_in_bf16(c, 1), shared = filter_gradient_in_bf16(c, 3);
  EXPECT_NE(fast.plan.find("winograd"), std::string::npos) << fast.plan;
  const auto given = fast.values[0].values<float>();
  const auto bytes = fast.values[0].as_bytes(), same = shared.values[0].as_bytes();
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), same.begin()));
  // Products of bfloat16 numbers are exact in float32: the plain reference is the direct sum of the rounded images.
  const Array x = test::random_array({c.batch, c.in, c.height, c.width}, 1, -1, 1),
              dy = test::random_array({c.batch, c.out, c.height, c.width}, 2, -1, 1);
  const auto rounded = [](const Array& array, int64_t n, int64_t channel, int64_t y, int64_t x) -> double {
    const Shape& s = array.type().shape;
    if (y < 0 || x < 0 || y >= s[2] || x >= s[3]) return 0;
    const size_t at = static_cast<size_t>(((n * s[1] + channel) * s[2] + y) * s[3] + x);
    return static_cast<float>(BFloat16(array.values<float>()[at]));
  };
  double largest = 0, error = 0;
  for (int64_t out = 0; out < c.out; out += 19)
    for (int64_t in = 0; in < c.in; in += 13)
      for (int64_t tap = 0; tap < 9; ++tap) {
        double sum = 0;
        for (int64_t n = 0; n < c.batch; ++n)
          for (int64_t i = 0; i < c.height; ++i)
            for (int64_t j = 0; j < c.width; ++j)
              sum += rounded(dy, n, out, i, j) * rounded(x, n, in, i + tap / 3 - 1, j + tap % 3 - 1);
        largest = std::max(largest, std::fabs(sum));
        error = std::max(error, std::fabs(sum - given[static_cast<size_t>((out * c.in + in) * 9 + tap)]));
      }
  EXPECT_LT(error, 1e-5 * largest);
}

}  // namespace
}  // namespace mox
