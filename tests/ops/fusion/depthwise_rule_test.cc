// Depthwise convolutions and their gradients as one node with the normalisation before them.
#include "ops/fusion/internal/depthwise_rule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/normalisation/normalisation.h"
#include "ops/ops.h"
#include "ops/processor/processor.h"
#include "tests/ops/convolution/depthwise/depthwise_cases.h"
#include "tests/ops/fusion/convolution_epilogue_testing.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;

bool has_kernels() { return processor().lanes == 8; }

enum class After { kClip, kRelu };

Tensor activated(const Tensor& x, After after) {
  return after == After::kClip ? clip_by_value(x, -0.5, 0.75) : relu(x);
}

// in: an image, scale, offset, filter, scale, offset.
Tensor unit(Inputs in, const ImageCase& c, After after) {
  const Tensor x = activated(batch_norm(in[0], in[1], in[2], {.epsilon = 0.1}).y, after);
  const Tensor y = conv2d(x, in[3], depthwise_options(c));
  return activated(batch_norm(y, in[4], in[5], {.epsilon = 0.2}).y, after);
}

std::vector<Tensor> unit_with_gradients(Inputs in, const ImageCase& c, After after) {
  const Tensor y = unit(in, c, after);
  const Tensor loss = reduce_sum(mul(square(y), 0.5f));
  std::vector<Tensor> results = {y};
  for (const Tensor& gradient : gradients(loss, in)) results.push_back(gradient);
  return results;
}

std::vector<Array> inputs_of_unit(const ImageCase& c) {
  const int64_t channels = c.image[1];
  return {random_array(c.image, 1),
          random_array({channels}, 2, 0.5f, 1.5f),
          random_array({channels}, 3),
          random_array(filter_shape(c), 4),
          random_array({c.filters}, 5, 0.5f, 1.5f),
          random_array({c.filters}, 6)};
}

TEST(DepthwiseRule, KeepsValuesAndGradients) {
  for (const ImageCase& c : depthwise_cases())
    for (const After after : {After::kClip, After::kRelu}) {
      SCOPED_TRACE(fmt::format("{} {}", c.name, after == After::kClip ? "clip" : "relu"));
      // Expects the same with and without the rules, and the same bits on any number of threads.
      evaluate_ops([&](Inputs in) { return unit_with_gradients(in, c, after); }, inputs_of_unit(c), 2e-4);
    }
}

// A stretch that is computed again gives the image for the filter's gradient behind that of the image.
TEST(DepthwiseRule, KeepsGradientsWhereAStretchEndsWithTheConvolution) {
  constexpr int64_t kChannels = 32;
  const std::vector<Array> inputs = {random_array({8, kChannels, 24, 24}, 1),
                                     random_array({kChannels, kChannels, 1, 1}, 2),
                                     random_array({kChannels}, 3, 0.5f, 1.5f),
                                     random_array({kChannels}, 4),
                                     random_array({kChannels, 1, 3, 3}, 5),
                                     random_array({kChannels}, 6, 0.5f, 1.5f),
                                     random_array({kChannels}, 7)};
  evaluate_ops(
      [](Inputs in) {
        Tensor y;
        {
          NodeTraits stretch;
          stretch.recomputed_stretch = 1;
          const TraitsScope scope(stretch);
          const Tensor x = relu(batch_norm(conv2d(in[0], in[1]), in[2], in[3]).y);
          y = conv2d(x, in[4], {.groups = kChannels});
        }
        const Tensor loss = reduce_mean(square(relu(batch_norm(y, in[5], in[6]).y)));
        std::vector<Tensor> results = {loss};
        for (const Tensor& gradient : gradients(loss, in)) results.push_back(gradient);
        return results;
      },
      inputs, 2e-4);
}

TEST(DepthwiseRule, GradientsAreThoseOfFiniteDifferences) {
  // No value is near a border of the activation: the offsets of the channels are far from it, on either side.
  for (const ImageCase& c :
       {ImageCase{"", {2, 8, 3, 4}, 8}, ImageCase{"by two", {2, 8, 4, 5}, 8, 3, 2, Padding::of(1)}}) {
    std::vector<Array> in = inputs_of_unit(c);
    for (const int offsets : {2, 5})
      for (int64_t i = 0; i < c.image[1]; ++i) in[offsets].values<float>()[i] = i % 4 == 0 ? -8.0f : 8.0f;
    check_gradients(
        [&](Inputs inputs) {
          const Tensor x = relu(batch_norm(inputs[0], inputs[1], inputs[2], {.epsilon = 0.1}).y);
          return relu(
              batch_norm(conv2d(x, inputs[3], depthwise_options(c)), inputs[4], inputs[5], {.epsilon = 0.2})
                  .y);
        },
        in);
  }
}

std::string plan_of(const ImageCase& c, const BuildMany& build, const RuleOptions& rules = {}) {
  std::vector<TensorType> types;
  for (const Array& input : inputs_of_unit(c)) types.push_back(input.type());
  return plan_text(build, types, rules);
}
bool has(const std::string& plan, const std::string& op) {
  return plan.find(" " + op + " ") != std::string::npos;
}

TEST(DepthwiseRule, FiresWhereThereAreKernels) {
  for (const ImageCase& c : depthwise_cases()) {
    SCOPED_TRACE(c.name);
    for (const RuleOptions& rules : {RuleOptions{}, RuleOptions{.direct_convolutions = true},
                                     RuleOptions{.recomputed = RecomputedNormalisations::kAll}}) {
      const std::string plan = plan_of(
          c, [&](Inputs in) { return unit_with_gradients(in, c, After::kClip); }, rules);
      EXPECT_EQ(has(plan, "depthwise_of_normalised"), has_kernels());
      EXPECT_EQ(has(plan, "depthwise_normalised_gradients"), has_kernels());
      for (const char* replaced :
           {"conv2d", "conv2d_input_gradient", "conv2d_filter_gradient", "batch_norm_activation"})
        EXPECT_EQ(has(plan, replaced), !has_kernels()) << replaced;
    }
  }
  for (const ImageCase& c :
       {ImageCase{"window of 5", {2, 16, 9, 9}, 16, 5}, ImageCase{"two filters a channel", {2, 16, 9, 9}, 32},
        ImageCase{"no padding", {2, 16, 9, 9}, 16, 3, 1, Padding::kValid},
        ImageCase{"no padding, by two", {2, 16, 9, 9}, 16, 3, 2, Padding::kValid},
        ImageCase{"by three", {2, 16, 9, 9}, 16, 3, 3}, ImageCase{"twelve channels", {2, 12, 9, 9}, 12}}) {
    SCOPED_TRACE(c.name);
    const std::string plan = plan_of(c, [&](Inputs in) { return unit_with_gradients(in, c, After::kClip); });
    EXPECT_FALSE(has(plan, "depthwise_of_normalised"));
    EXPECT_FALSE(has(plan, "depthwise_normalised_gradients"));
  }
}

// Of what the nodes replace, everything may be wanted by something else.
TEST(DepthwiseRule, LeavesAloneWhatOthersRead) {
  const ImageCase c = depthwise_cases()[0];
  struct Wanted {
    const char* name;
    bool has_forward, has_gradients;
    BuildMany build;
  };
  const auto middle = [&](Inputs in) { return clip_by_value(batch_norm(in[0], in[1], in[2]).y, 0, 6); };
  const auto behind = [&](Inputs in, const Tensor& x) { return conv2d(x, in[3], depthwise_options(c)); };
  const auto last = [&](Inputs in, const Tensor& y) {
    return clip_by_value(batch_norm(y, in[4], in[5]).y, 0, 6);
  };
  const auto all_gradients = [&](Inputs in, const Tensor& y, std::vector<Tensor> of) {
    std::vector<Tensor> results = gradients(reduce_sum(square(last(in, y))), of);
    for (const Tensor& input : gradients(reduce_sum(square(last(in, y))), {in.begin(), in.end()}))
      if (input.defined()) results.push_back(input);
    return results;
  };
  const std::vector<Wanted> cases = {
      {"forward alone", true, false,
       [&](Inputs in) -> std::vector<Tensor> { return {last(in, behind(in, middle(in)))}; }},
      {"the normalised image", false, false,
       [&](Inputs in) -> std::vector<Tensor> {
         const Tensor x = middle(in);
         return {x, last(in, behind(in, x))};
       }},
      {"a result that is not normalised", false, true,
       [&](Inputs in) -> std::vector<Tensor> {
         return gradients(reduce_sum(square(behind(in, middle(in)))), {in.begin(), in.begin() + 4});
       }},
      {"the image's gradient", false, false,
       [&](Inputs in) {
         const Tensor x = middle(in);
         return gradients(reduce_sum(square(last(in, behind(in, x)))), std::vector{in[0], in[3], x});
       }},
      {"no gradient of the filter", true, false,
       [&](Inputs in) {
         return gradients(reduce_sum(square(last(in, behind(in, middle(in))))), std::vector{in[0]});
       }},
      {"no gradient of the image", false, false,
       [&](Inputs in) {
         return gradients(reduce_sum(square(last(in, behind(in, middle(in))))), std::vector{in[3]});
       }},
      {"the result and its gradient", true, true,
       [&](Inputs in) {
         const Tensor y = behind(in, middle(in));
         std::vector<Tensor> results = all_gradients(in, y, {y});
         results.push_back(y);
         return results;
       }},
  };
  for (const Wanted& wanted : cases) {
    SCOPED_TRACE(wanted.name);
    const std::string plan = plan_of(c, wanted.build);
    EXPECT_EQ(has(plan, "depthwise_of_normalised"), wanted.has_forward && has_kernels()) << plan;
    EXPECT_EQ(has(plan, "depthwise_normalised_gradients"), wanted.has_gradients && has_kernels()) << plan;
    evaluate_ops(wanted.build, inputs_of_unit(c), 2e-3);
  }
}

// One node's result is what the next one normalises.
TEST(DepthwiseRule, StandsInARow) {
  const ImageCase c = depthwise_cases()[0];
  std::vector<Array> arrays = inputs_of_unit(c);
  for (const uint64_t seed : {7, 8}) arrays.push_back(random_array(filter_shape(c), seed));
  const auto build = [&](Inputs in) {
    Tensor x = in[0];
    for (const int filter : {3, 6, 7}) {
      x = clip_by_value(batch_norm(x, in[1], in[2]).y, 0, 6);
      x = conv2d(x, in[filter], depthwise_options(c));
    }
    x = clip_by_value(batch_norm(x, in[4], in[5]).y, 0, 6);
    std::vector<Tensor> results = gradients(reduce_sum(square(x)), {in.begin(), in.end()});
    results.push_back(x);
    return results;
  };
  std::vector<TensorType> types;
  for (const Array& array : arrays) types.push_back(array.type());
  const std::string plan = plan_text(build, types, {});
  EXPECT_EQ(has(plan, "batch_norm_statistics"), has_kernels());
  EXPECT_EQ(has(plan, "batch_norm_activation"), !has_kernels());
  evaluate_ops(build, arrays, 5e-3);
}

}  // namespace
}  // namespace mox::test
