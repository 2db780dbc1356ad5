// Winograd convolutions against the direct sum.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "ops/convolution/convolution.h"
#include "ops/convolution/winograd/rounding.h"
#include "ops/fusion/default_rules.h"
#include "ops/ops.h"
#include "ops/processor/processor.h"
#include "runtime/exec/plan_instance.h"
#include "tests/support/evaluate.h"
#include "tests/support/larger.h"

namespace mox {
namespace {

struct WinogradCase {
  int64_t batch, in, out, height, width, window;
  Padding padding;
  int64_t stride = 1;

  ConvolutionOptions options() const { return {.strides = {stride, stride}, .padding = padding}; }
  ConvolutionGeometry geometry() const {
    return resolve_convolution(convolution_attributes(options()),
                               {DType::kFloat32, {batch, in, height, width}},
                               {DType::kFloat32, {out, in, window, window}});
  }
};

void PrintTo(const WinogradCase& c, std::ostream* stream) {
  *stream << to_string(Shape{c.batch, c.in, c.height, c.width}) << " to " << c.out
          << " channels by a window of " << c.window << ", stride " << c.stride;
}

size_t count(std::string_view text, std::string_view word) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; at += word.size()) ++found;
  return found;
}

class WinogradTest : public ::testing::TestWithParam<WinogradCase> {};

struct WinogradResults {
  std::vector<Array> values;
  std::string plan;
};

// y (with a bias), dx and dw.
WinogradResults run(const WinogradCase& c, bool direct, int threads,
                    Precision precision = Precision::kFloat32) {
  Graph graph;
  const GraphScope scope(graph);
  const SourceLocation here = SourceLocation::current();
  std::vector<Array> inputs = {test::random_array({c.batch, c.in, c.height, c.width}, 1, -1, 1),
                               test::random_array({c.out, c.in, c.window, c.window}, 2, -1, 1),
                               test::random_array({c.out}, 3, -1, 1)};
  const Tensor x = graph.input(0, inputs[0].type(), here), w = graph.input(1, inputs[1].type(), here);
  const ConvolutionOptions options = c.options();
  const Tensor y = bias_add(conv2d(x, w, options), graph.input(2, inputs[2].type(), here));
  inputs.push_back(test::random_array(y.shape(), 4, -1, 1));
  const Tensor dy = graph.input(3, inputs[3].type(), here);
  const std::vector<Tensor> fetches = {y, conv2d_input_gradient(x.shape(), w, dy, options),
                                       conv2d_filter_gradient(x, w.shape(), dy, options)};
  const Team team(threads);
  team.enter();
  CompileOptions compile = test::compile_options();
  const RuleOptions rules{.precision = precision, .direct_convolutions = direct};
  compile.hints = kernel_hints(rules);
  compile.rules = default_rules(rules);
  compile.convert = convert_layout;
  const auto plan =
      Plan::compile(graph, {.fetches = fetches, .gradients = {}, .after_step_values = {}}, compile, team);
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
  const size_t kernels = count(fast.plan, "winograd");
  const bool are_whole = GetParam().in % processor().lanes == 0 && GetParam().out % processor().lanes == 0;
  EXPECT_EQ(kernels, are_whole ? 3u : 0u) << fast.plan;
  const ConvolutionGeometry geometry = GetParam().geometry();
  constexpr ConvolutionResult kResults[] = {ConvolutionResult::kOutput, ConvolutionResult::kInputGradient,
                                            ConvolutionResult::kFilterGradient};
  for (size_t v = 0; v < 3; ++v) {
    const auto expected = direct.values[v].values<float>(), given = fast.values[v].values<float>();
    double largest = 0, error = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      largest = std::max<double>(largest, std::fabs(expected[i]));
      error = test::larger(error, std::fabs(expected[i] - given[i]));
    }
    EXPECT_LT(error, winograd_error(geometry, kResults[v]) * largest) << "value " << v;
    // Where the sums are oneDNN's they are cut by the number of threads (docs/determinism.md).
    if (kernels == 0) continue;
    const auto bytes = fast.values[v].as_bytes(), same = shared.values[v].as_bytes();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), same.begin())) << "value " << v;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradTest,
    ::testing::Values(
        WinogradCase{8, 16, 32, 14, 14, 5, Padding::kSame},
        WinogradCase{5, 32, 48, 17, 23, 5, Padding::kValid},
        WinogradCase{16, 64, 16, 14, 13, 3, Padding::kSame},
        WinogradCase{9, 48, 80, 18, 18, 3, Padding::of(2, 0, 1, 2)},
        WinogradCase{4, 16, 64, 31, 29, 3, Padding::kValid},
        WinogradCase{3, 32, 32, 30, 30, 5, Padding::of(4, 3, 0, 1)},
        // As many channels on both sides: products in the place of their tiles, and more than fit there.
        WinogradCase{5, 16, 16, 19, 22, 3, Padding::kSame},
        WinogradCase{5, 64, 64, 14, 17, 3, Padding::kSame},
        WinogradCase{5, 96, 96, 14, 17, 3, Padding::kSame},
        WinogradCase{5, 128, 128, 14, 17, 3, Padding::kSame},
        // Filters beyond a core's cache: one chunk of tiles, and several.
        WinogradCase{4, 144, 128, 14, 17, 3, Padding::kSame},
        WinogradCase{8, 192, 224, 27, 30, 3, Padding::of(2, 0, 1, 2)},
        // Long sums, of channels and of pixels: their rounding must not grow with the root of their length.
        WinogradCase{2, 512, 512, 28, 28, 3, Padding::kSame},
        WinogradCase{16, 128, 128, 56, 56, 3, Padding::kSame},
        // Whole vectors of 8 lanes alone: blocks of one, three, five and seven of them.
        WinogradCase{16, 8, 24, 14, 13, 3, Padding::kSame},
        WinogradCase{12, 40, 8, 15, 18, 5, Padding::kSame},
        WinogradCase{6, 24, 56, 31, 30, 3, Padding::of(1, 1, 1, 1), 2},
        WinogradCase{7, 152, 136, 15, 14, 3, Padding::kSame},
        WinogradCase{40, 272, 80, 5, 9, 3, Padding::kValid},
        // Strides of 2: even and odd sizes, with and without padding before the image.
        WinogradCase{6, 16, 32, 32, 32, 3, Padding::of(1, 1, 1, 1), 2},
        WinogradCase{6, 32, 16, 31, 29, 3, Padding::of(1, 1, 1, 1), 2},
        WinogradCase{9, 64, 48, 18, 23, 3, Padding::of(1, 0, 1, 0), 2},
        WinogradCase{7, 48, 80, 28, 30, 3, Padding::kSame, 2},
        WinogradCase{9, 16, 16, 19, 26, 3, Padding::kValid, 2},
        WinogradCase{16, 64, 128, 17, 16, 3, Padding::of(0, 1, 0, 1), 2},
        WinogradCase{17, 128, 112, 9, 14, 3, Padding::of(1, 1, 1, 1), 2}));

// Errors of values: their root mean square and the largest, of the root mean square and of the largest of
// what is expected.
struct Errors {
  double typical, largest;
};
Errors errors_of(const Array& given, const Array& expected) {
  double error = 0, error_squares = 0, value = 0, value_squares = 0;
  const auto a = given.values<float>(), b = expected.values<float>();
  for (size_t i = 0; i < b.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - b[i]);
    error = test::larger(error, difference);
    error_squares += difference * difference;
    value = std::max<double>(value, std::fabs(b[i]));
    value_squares += static_cast<double>(b[i]) * b[i];
  }
  return {std::sqrt(error_squares / value_squares), error / value};
}

class WinogradInBf16Test : public ::testing::TestWithParam<WinogradCase> {};

// The direct sum of bfloat16 products is the reference: the same numbers come in rounded, and y and dx go out
// rounded. What the transforms' rounding adds depends little on the shape; the bounds are a tenth above what
// was measured.
TEST_P(WinogradInBf16Test, AgreesWithTheDirectSumAndDoesNotDependOnTheTeam) {
  const Precision precision = Precision::kBFloat16;
  const WinogradResults direct = run(GetParam(), true, 1, precision),
                        fast = run(GetParam(), false, 1, precision),
                        shared = run(GetParam(), false, 3, precision);
  EXPECT_EQ(direct.plan.find("winograd"), std::string::npos);
  if (!processor().bfloat16_products || processor().tiles) {
    EXPECT_EQ(count(fast.plan, "winograd4x4"), 0u) << fast.plan;
    GTEST_SKIP() << "needs AVX512_BF16, without AMX";
  }
  EXPECT_EQ(count(fast.plan, "winograd4x4:avx512_core_bf16"), 3u) << fast.plan;
  for (size_t v = 0; v < 3; ++v) {
    const Errors errors = errors_of(fast.values[v], direct.values[v]);
    EXPECT_LT(errors.typical, v < 2 ? 0.005 : 0.0045) << "value " << v;
    EXPECT_LT(errors.largest, 0.01) << "value " << v;
    const auto bytes = fast.values[v].as_bytes(), same = shared.values[v].as_bytes();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), same.begin())) << "value " << v;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradInBf16Test,
    ::testing::Values(WinogradCase{16, 64, 16, 14, 13, 3, Padding::kSame},
                      WinogradCase{9, 48, 80, 18, 18, 3, Padding::of(2, 0, 1, 2)},
                      WinogradCase{4, 16, 64, 31, 29, 3, Padding::kValid},
                      WinogradCase{12, 112, 32, 7, 9, 3, Padding::kSame},
                      // Rows of more tiles than are transformed at a time; of one tile, mostly padding.
                      WinogradCase{3, 48, 32, 11, 75, 3, Padding::kSame},
                      WinogradCase{70, 32, 16, 7, 1, 3, Padding::of(2, 2, 1, 1)},
                      WinogradCase{8, 112, 128, 30, 29, 3, Padding::kSame},  // sums that alone fill a cache
                      // The gradients' sums beyond a core's cache: one chunk of tiles, and several.
                      WinogradCase{4, 144, 128, 14, 17, 3, Padding::kSame},
                      WinogradCase{8, 192, 224, 27, 30, 3, Padding::of(2, 0, 1, 2)},
                      WinogradCase{40, 272, 80, 5, 9, 3, Padding::kValid}));

}  // namespace
}  // namespace mox
