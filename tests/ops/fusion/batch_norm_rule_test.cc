#include "ops/fusion/internal/batch_norm_rule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/convolution/conv2d.h"
#include "ops/gradients.h"
#include "ops/normalisation/normalisation.h"
#include "ops/reduction/reduction.h"
#include "tests/ops/kernel_testing.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;
using Names = std::vector<std::string>;

// How often each op remains after the rules, of those that could be fused.
std::map<std::string, int> count_after_fusion(const BuildMany& build, const std::vector<Array>& inputs) {
  Graph graph;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors.push_back(graph.input(static_cast<int>(i), inputs[i].type(), SourceLocation::current()));
  GraphRewriter rewriter(graph, build(tensors));
  rewriter.apply(batch_norm_activation_rule().rule);
  rewriter.apply(batch_norm_gradient_rule().rule);
  std::map<std::string, int> count;
  for (const auto& node : rewriter.graph().nodes())
    for (const char* name :
         {"batch_norm", "batch_norm_activation", "batch_norm_gradient", "batch_norm_activation_gradient",
          "relu", "clip_by_value", "add", "select", "greater"})
      if (node->op->name == name) ++count[name];
  return count;
}

// y, and the gradients of sum(y^2 / 2) for all inputs.
std::vector<Tensor> with_gradients(const Tensor& y, Inputs in) {
  std::vector<Tensor> results = {y};
  for (const Tensor& gradient : gradients(reduce_sum(mul(mul(y, y), 0.5f)), in))
    if (gradient.defined()) results.push_back(gradient);
  return results;
}

Tensor normalise(const Tensor& x, Inputs in) { return batch_norm(x, in[1], in[2], {.epsilon = 0.1}).y; }

struct NormalisationCase {
  const char* name;
  Build build;
  std::map<std::string, int> expected;
};

// Inputs: an image, scale, offset, another image.
std::vector<NormalisationCase> normalisation_cases() {
  const std::map<std::string, int> all = {{"batch_norm_activation", 1},
                                          {"batch_norm_activation_gradient", 1}};
  return {
      {"relu", [](Inputs in) { return relu(normalise(in[0], in)); }, all},
      {"clip", [](Inputs in) { return clip_by_value(normalise(in[0], in), -0.25, 0.75); }, all},
      {"residual", [](Inputs in) { return relu(add(normalise(in[0], in), in[3])); }, all},
      {"residual_on_the_left", [](Inputs in) { return relu(add(in[3], normalise(in[0], in))); }, all},
      {"residual_is_the_image",
       [](Inputs in) { return relu(add(normalise(in[0], in), in[0])); },
       {{"batch_norm_activation", 1}, {"batch_norm_activation_gradient", 1}, {"add", 1}}},
      {"two_normalisations",
       [](Inputs in) { return relu(add(normalise(in[0], in), normalise(in[3], in))); },
       {{"batch_norm", 1},
        {"batch_norm_activation", 1},
        {"batch_norm_gradient", 1},
        {"batch_norm_activation_gradient", 1},
        {"add", 2}}},  // of the gradients of scale and offset
      {"two_gradients_arrive",
       [](Inputs in) {
         const Tensor y = relu(add(normalise(in[0], in), in[3]));
         return add(mul(y, in[3]), mul(y, 2.0f));
       },
       {{"batch_norm_activation", 1}, {"batch_norm_activation_gradient", 1}, {"add", 3}}},
      {"nothing_after",
       [](Inputs in) { return normalise(in[0], in); },
       {{"batch_norm", 1}, {"batch_norm_gradient", 1}, {"add", 1}}},
      {"used_before_the_activation",
       [](Inputs in) {
         const Tensor y = normalise(in[0], in);
         return mul(relu(y), y);
       },
       {{"batch_norm", 1},
        {"batch_norm_gradient", 1},
        {"relu", 1},
        {"select", 1},
        {"greater", 1},
        {"add", 2}}},
      {"residual_made_later",
       [](Inputs in) {
         const Tensor y = normalise(in[0], in);
         return relu(add(y, mul(in[3], 2.0f)));
       },
       {{"batch_norm", 1},
        {"batch_norm_gradient", 1},
        {"relu", 1},
        {"select", 1},
        {"greater", 1},
        {"add", 2}}},
  };
}

std::vector<Array> inputs_of(const Shape& shape) {
  return {random_array(shape, 1), random_array({shape[1]}, 2, 0.5f, 1.5f), random_array({shape[1]}, 3),
          random_array(shape, 4)};
}

TEST(BatchNormFusion, FusesWhatNothingElseUses) {
  for (const NormalisationCase& c : normalisation_cases()) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(count_after_fusion([&](Inputs in) { return with_gradients(c.build(in), in); },
                                 inputs_of({2, 3, 4, 4})),
              c.expected);
  }
}

TEST(BatchNormFusion, KeepsValuesAndGradients) {
  for (const NormalisationCase& c : normalisation_cases())
    for (const Shape& shape :
         {Shape{3, 5, 4, 3}, Shape{2, 32, 3, 3}, Shape{4, 48, 1, 1}, Shape{1, 16, 9, 7}}) {
      SCOPED_TRACE(std::string(c.name) + " " + to_string(shape));
      // Expects the same with and without the rules, and the same bits on any number of threads.
      evaluate_ops([&](Inputs in) { return with_gradients(c.build(in), in); }, inputs_of(shape));
    }
}

TEST(BatchNormFusion, KeepsValuesBesideConvolutions) {
  const auto build = [](Inputs in) {
    const Tensor x = conv2d(in[0], in[4]);
    return with_gradients(relu(add(normalise(x, in), in[3])), in);
  };
  for (const Shape& shape :
       {Shape{2, 20, 6, 6}, Shape{9, 32, 24, 24}}) {  // the second is shared out by samples
    std::vector<Array> inputs = inputs_of(shape);
    inputs.push_back(random_array({shape[1], shape[1], 3, 3}, 5, -0.1f, 0.1f));
    // The filter's gradient: up to 300, of 5184 terms. Beside the same in double precision both have errors
    // of 7e-5 (root mean square).
    const double rounding = shape[1] == 32 ? 1e-3 : 1e-5;
    evaluate_ops(build, inputs, rounding);
  }
}

// Where a layout has room for more channels than there are, that room is zero; what clips zero away must not
// touch it.
TEST(BatchNormFusion, KeepsTheRoomBesideChannelsZero) {
  for (const auto& [low, high] : {std::pair(0.25, 0.75), std::pair(-0.75, -0.25)}) {
    const auto build = [low = low, high = high](Inputs in) {
      const Tensor x = clip_by_value(normalise(conv2d(in[0], in[4]), in), low, high);
      return with_gradients(conv2d(x, in[4]), in);
    };
    std::vector<Array> inputs = inputs_of({2, 20, 6, 6});
    inputs.push_back(random_array({20, 20, 3, 3}, 5, -0.1f, 0.1f));
    evaluate_ops(build, inputs);
    EXPECT_EQ(count_after_fusion(build, inputs).count("batch_norm_activation"), 0);
  }
}

TEST(BatchNormFusion, MatchesFiniteDifferences) {
  std::vector<Array> inputs = inputs_of({2, 3, 3, 3});
  // Values away from the kink of relu: the residual decides the sign.
  for (size_t i = 0; float& v : inputs[3].values<float>()) v = i++ % 3 == 0 ? -8.0f : 8.0f;
  check_gradients([](Inputs in) { return relu(add(normalise(in[0], in), in[3])); }, inputs,
                  {.absolute = 5e-3});
}

std::string plan_of(const Graph& graph, const std::vector<Tensor>& fetches, const CompileOptions& options) {
  const Team team(2);
  return Plan::compile(graph, {.fetches = fetches, .gradients = {}, .after_step_values = {}}, options, team)
      ->describe();
}

int64_t count_in(const std::string& plan, const std::string& op) {
  int64_t found = 0;
  for (size_t at = 0; (at = plan.find(" " + op + " ", at)) != std::string::npos; ++at) ++found;
  return found;
}

// How many images the plan computes again.
int64_t again_in(const std::string& plan) { return count_in(plan, "batch_norm_activation_again"); }

TEST(BatchNormFusion, RecomputesByItselfWhereThatIsCheap) {
  struct Case {
    int64_t out, window;
    Precision precision;
    RecomputedNormalisations where;
    int64_t expected;
    int64_t size = 81;  // with it the image is 25 KB larger than kWorthwhileBytes
  };
  using enum RecomputedNormalisations;
  for (const auto& [out, window, precision, where, expected, size] :
       {Case{29, 3, Precision::kFloat32, kCheap, 1}, Case{28, 3, Precision::kFloat32, kCheap, 0},
        Case{29, 3, Precision::kFloat32, kCheap, 0, 80}, Case{29, 3, Precision::kFloat32, kAll, 1, 80},
        Case{256, 1, Precision::kFloat32, kCheap, 1}, Case{255, 1, Precision::kFloat32, kCheap, 0},
        Case{1, 1, Precision::kFloat32, kAll, 1}, Case{128, 3, Precision::kFloat32, kNone, 0},
        Case{128, 3, Precision::kBFloat16, kCheap, 0}, Case{1, 1, Precision::kBFloat16, kAll, 1}}) {
    if (precision == Precision::kBFloat16 && bfloat16_support() == BFloat16Support::kNone) continue;
    SCOPED_TRACE(fmt::format("{} filters of {} x {}, {} pixels a side", out, window, window, size));
    Graph graph;
    const GraphScope scope(graph);
    std::vector<Tensor> in;
    for (const Shape& shape :
         {Shape{64, 20, size, size}, Shape{20}, Shape{20}, Shape{out, 20, window, window}})
      in.push_back(
          graph.input(static_cast<int>(in.size()), {DType::kFloat32, shape}, SourceLocation::current()));
    const Tensor y = conv2d(relu(normalise(in[0], in)), in[3]);
    const CompileOptions options{.rules = default_rules({.precision = precision, .recomputed = where}),
                                 .convert = convert_layout};
    EXPECT_EQ(again_in(plan_of(graph, with_gradients(y, in), options)), expected);
  }
}

TEST(BatchNormFusion, MakesAShortcutsConvolutionAgainWhereThatIsCheap) {
  struct Case {
    int64_t channels, window;
    bool after_activation;  // the image is itself made again
    Precision precision;
    RecomputedNormalisations where;
    bool expected;
  };
  using enum RecomputedNormalisations;
  for (const auto& [channels, window, after_activation, precision, where, expected] :
       {Case{64, 1, false, Precision::kFloat32, kCheap, true},
        Case{64, 1, false, Precision::kFloat32, kAll, true},
        Case{64, 1, false, Precision::kFloat32, kNone, false},
        Case{65, 1, false, Precision::kFloat32, kCheap, false},
        Case{7, 3, false, Precision::kFloat32, kCheap, true},
        Case{8, 3, false, Precision::kFloat32, kCheap, false},
        Case{64, 1, true, Precision::kFloat32, kCheap, false},
        Case{64, 1, false, Precision::kBFloat16, kCheap, false}}) {
    if (precision == Precision::kBFloat16 && bfloat16_support() == BFloat16Support::kNone) continue;
    SCOPED_TRACE(fmt::format("{} channels, window of {}", channels, window));
    Graph graph;
    const GraphScope scope(graph);
    std::vector<Array> inputs = {random_array({2, channels, 6, 6}, 1),
                                 random_array({16}, 2, 0.5f, 1.5f),
                                 random_array({16}, 3),
                                 random_array({16, channels, window, window}, 4, -0.1f, 0.1f),
                                 random_array({channels}, 5, 0.5f, 1.5f),
                                 random_array({channels}, 6)};
    std::vector<Tensor> in;
    for (const Array& array : inputs)
      in.push_back(graph.input(static_cast<int>(in.size()), array.type(), SourceLocation::current()));
    const Tensor x = after_activation ? relu(batch_norm(in[0], in[4], in[5]).y) : in[0];
    const Tensor shortcut = normalise(conv2d(x, in[3]), in);
    const std::vector<Tensor> fetches = with_gradients(
        relu(add(normalise(conv2d(x, mul(in[3], 2.0f)), in), shortcut)), std::span(in).first(4));
    const auto options = [&, precision = precision](RecomputedNormalisations recomputed) {
      return CompileOptions{.rules = default_rules({.precision = precision, .recomputed = recomputed}),
                            .convert = convert_layout};
    };
    const auto convolutions = [&](RecomputedNormalisations recomputed) {
      return count_in(plan_of(graph, fetches, options(recomputed)), "conv2d");
    };
    EXPECT_EQ(convolutions(kNone), 2);
    EXPECT_EQ(convolutions(where), expected ? 3 : 2);
    const std::vector<Array> kept = evaluate(fetches, inputs, {.threads = 2, .compile = options(kNone)}),
                             again = evaluate(fetches, inputs, {.threads = 2, .compile = options(where)});
    for (size_t i = 0; i < fetches.size(); ++i)
      EXPECT_EQ(std::memcmp(kept[i].data(), again[i].data(), kept[i].bytes()), 0) << i;
  }
}

TEST(BatchNormFusion, RecomputesAsTheWordsOfTheOptionSay) {
  using enum RecomputedNormalisations;
  EXPECT_EQ(recomputed_normalisations("none"), kNone);
  EXPECT_EQ(recomputed_normalisations("auto"), kCheap);
  EXPECT_EQ(recomputed_normalisations("normalisation"), kAll);
}

TEST(BatchNormFusion, RecomputesToTheSameBits) {
  const auto build = [](Inputs in) {
    Tensor x = relu(normalise(conv2d(in[0], in[4]), in));
    x = clip_by_value(normalise(conv2d(x, in[4]), in), 0, 6);
    return with_gradients(relu(add(normalise(conv2d(x, in[4]), in), in[3])), in);
  };
  std::vector<Array> inputs = inputs_of({2, 20, 6, 6});
  inputs.push_back(random_array({20, 20, 3, 3}, 5, -0.1f, 0.1f));
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    if (precision == Precision::kBFloat16 && bfloat16_support() == BFloat16Support::kNone) continue;
    Graph graph;
    const GraphScope scope(graph);
    std::vector<Tensor> tensors;
    for (const Array& array : inputs)
      tensors.push_back(
          graph.input(static_cast<int>(tensors.size()), array.type(), SourceLocation::current()));
    const std::vector<Tensor> fetches = build(tensors);
    std::vector<std::vector<Array>> results;
    for (const auto recomputed : {RecomputedNormalisations::kNone, RecomputedNormalisations::kAll}) {
      const CompileOptions options{.rules = default_rules({.precision = precision, .recomputed = recomputed}),
                                   .convert = convert_layout};
      results.push_back(evaluate(fetches, inputs, {.threads = 2, .compile = options}));
      EXPECT_EQ(again_in(plan_of(graph, fetches, options)) > 0, recomputed == RecomputedNormalisations::kAll);
    }
    for (size_t i = 0; i < fetches.size(); ++i)
      EXPECT_EQ(std::memcmp(results[0][i].data(), results[1][i].data(), results[0][i].bytes()), 0) << i;
  }
}

TEST(BatchNormFusion, KeepsNaN) {
  std::vector<Array> inputs = inputs_of({2, 20, 3, 3});
  inputs[0].values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  for (const NormalisationCase& c : normalisation_cases()) {
    SCOPED_TRACE(c.name);
    const Array y = evaluate_op([&](Inputs in) { return c.build(in); }, inputs);
    EXPECT_TRUE(std::isnan(y.values<float>()[0]));
    EXPECT_FALSE(std::isnan(y.values<float>()[9]));  // another channel
  }
}

}  // namespace
}  // namespace mox::test
