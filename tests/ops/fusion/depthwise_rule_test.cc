// Depthwise convolutions and their gradients as one node with the normalisation before them.
#include "ops/fusion/internal/depthwise_rule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/convolution/convolution.h"
#include "ops/convolution/depthwise/depthwise.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/normalisation/normalisation.h"
#include "ops/ops.h"
#include "ops/processor/processor.h"
#include "tests/ops/fusion/convolution_epilogue_testing.h"
#include "tests/ops/reference_convolution.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;

bool has_kernels() { return processor().lanes == 8; }

ConvolutionOptions depthwise_options(const ImageCase& c) {
  ConvolutionOptions options = c.options();
  options.groups = c.image[1];
  return options;
}
Shape filter_shape(const ImageCase& c) { return {c.filters, 1, c.window, c.window}; }

// Rows that fill several strips and that do not, blocks of pixels and the rest, every way to begin and to end
// with a step of 2, images of a pixel.
std::vector<ImageCase> depthwise_cases() {
  return {{"several strips", {3, 16, 23, 18}, 16},
          {"a strip", {2, 24, 7, 7}, 24},
          {"narrow", {2, 8, 9, 1}, 8},
          {"low", {2, 8, 1, 9}, 8},
          {"a pixel", {5, 8, 1, 1}, 8},
          {"wide rows", {2, 8, 3, 150}, 8},
          {"explicit padding", {2, 16, 6, 5}, 16, 3, 1, Padding::of(1)},
          {"by two", {3, 16, 24, 22}, 16, 3, 2, Padding::of(1)},
          {"by two, odd", {3, 16, 13, 15}, 16, 3, 2, Padding::of(1)},
          {"by two, padding behind", {3, 16, 24, 22}, 16, 3, 2},
          {"by two, padding before rows alone", {3, 16, 13, 22}, 16, 3, 2},
          {"by two, small", {2, 8, 2, 2}, 8, 3, 2},
          {"by two, a pixel", {4, 8, 1, 1}, 8, 3, 2, Padding::of(1)}};
}

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

// What both nodes compute, as plain loops.
struct Reference {
  std::vector<double> normalised, inside;  // of the image; whether the activation passed the value on
  std::vector<double> y, dz, filter_gradient;

  Reference(const ImageCase& c, std::span<const Array> in, const Array& dy) {
    const ReferenceConvolution convolution(c.image, filter_shape(c), depthwise_options(c));
    const int64_t pixels = c.image[2] * c.image[3], channels = c.image[1];
    for (int64_t i = 0; i < c.image.elements(); ++i) {
      const int64_t channel = i / pixels % channels;
      const auto of = [&](int input) -> double { return in[input].values<float>()[channel]; };
      const double value = (in[1].values<float>()[i] - of(4)) * of(2) / std::sqrt(of(5) + 0.1) + of(3);
      normalised.push_back(std::clamp(value, -0.5, 0.75));
      inside.push_back(value >= -0.5 && value <= 0.75);
    }
    y.resize(convolution.y.elements());
    dz.resize(normalised.size());
    filter_gradient.resize(filter_shape(c).elements());
    convolution.for_each_product([&](int64_t x, int64_t w, int64_t to) {
      y[to] += normalised[x] * in[0].values<float>()[w];
      dz[x] += inside[x] * in[0].values<float>()[w] * dy.values<float>()[to];
      filter_gradient[w] += normalised[x] * dy.values<float>()[to];
    });
  }
};

void expect_reference(const Array& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.elements(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual.values<float>()[i], expected[i], tolerance) << "element " << i;
}

TEST(DepthwiseRule, NodesComputeWhatPlainLoopsDo) {
  for (const ImageCase& c : depthwise_cases()) {
    SCOPED_TRACE(c.name);
    const int64_t channels = c.image[1], pixels = c.image[2] * c.image[3];
    const ReferenceConvolution convolution(c.image, filter_shape(c), depthwise_options(c));
    // filter, x, scale, offset, mean, variance, dy
    const std::vector<Array> in = {random_array(filter_shape(c), 1), random_array(c.image, 2),
                                   random_array({channels}, 3),      random_array({channels}, 4, -0.5f, 0.5f),
                                   random_array({channels}, 5),      random_array({channels}, 6, 0.1f, 1.0f),
                                   random_array(convolution.y, 7)};
    const Reference expected(c, in, in[6]);
    Graph graph;
    const GraphScope scope(graph);
    std::vector<Tensor> t;
    for (const Array& array : in)
      t.push_back(graph.input(static_cast<int>(t.size()), array.type(), SourceLocation::current()));
    Attributes attributes = convolution_attributes(depthwise_options(c));
    for (const auto& [name, value] :
         batch_norm_attributes(0.1, {.clips = true, .low = -0.5f, .high = 0.75f, .open = false}))
      attributes.set(name, value);
    Node& forward = make_packed_node<DepthwiseOfNormalisedInputs>(depthwise_of_normalised_op(),
                                                                  {t[0], t[1], t[2], t[3], t[4], t[5]},
                                                                  attributes, SourceLocation::current());
    Node& backward = make_packed_node<DepthwiseGradientsInputs>(depthwise_normalised_gradients_op(),
                                                                {t[0], t[6], t[1], t[2], t[3], t[4], t[5]},
                                                                attributes, SourceLocation::current());
    const std::vector<Array> results =
        run_graph(std::vector{forward.output(0), forward.output(1), forward.output(2), backward.output(0),
                              backward.output(1), backward.output(2)},
                  in);
    expect_reference(results[0], expected.y, 1e-5);
    expect_reference(results[3], expected.dz, 1e-5);
    expect_reference(results[5], expected.filter_gradient, 1e-4);

    const int64_t y_pixels = convolution.y[2] * convolution.y[3];
    std::vector<double> mean(channels), variance(channels), sums(c.image[0] * 2 * channels);
    for (size_t i = 0; i < expected.y.size(); ++i)
      mean[i / y_pixels % channels] += expected.y[i] / (c.image[0] * y_pixels);
    for (size_t i = 0; i < expected.y.size(); ++i)
      variance[i / y_pixels % channels] +=
          std::pow(expected.y[i] - mean[i / y_pixels % channels], 2) / (c.image[0] * y_pixels);
    for (size_t i = 0; i < expected.dz.size(); ++i) {
      const int64_t channel = i / pixels % channels, sample = i / pixels / channels;
      const double distance = in[1].values<float>()[i] - in[4].values<float>()[channel];
      sums[sample * 2 * channels + channel] += expected.dz[i];
      sums[(sample * 2 + 1) * channels + channel] += expected.dz[i] * distance;
    }
    expect_reference(results[1], mean, 1e-5);
    expect_reference(results[2], variance, 1e-5);
    expect_reference(results[4], sums, 1e-4);
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
    bool has_forward, has_backward;
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
    EXPECT_EQ(has(plan, "depthwise_normalised_gradients"), wanted.has_backward && has_kernels()) << plan;
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
