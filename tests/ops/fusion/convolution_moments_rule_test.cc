// Convolutions that give the moments of their results, and the batch normalisation that takes them.
#include "ops/fusion/internal/convolution_moments_rule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/convolution/convolution.h"
#include "ops/convolution/winograd/winograd.h"
#include "ops/fusion/internal/nodes/convolution_moments_node.h"
#include "ops/normalisation/normalisation.h"
#include "ops/ops.h"
#include "ops/support/fusable_ops.h"
#include "tests/ops/fusion/convolution_epilogue_testing.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;

// y and its moments.
std::vector<Tensor> convolve_with_moments(const Tensor& x, const Tensor& w,
                                          const ConvolutionOptions& options) {
  const Tensor plain = conv2d(x, w, options);
  Attributes attributes = plain.node()->attributes;
  const int64_t groups = winograd_moment_groups(resolve_convolution(attributes, x.type(), w.type()));
  attributes.set(kGroupsOfPixels, groups);
  Node& node = make_node(conv2d_moments_op(), {x, w}, std::move(attributes), SourceLocation::current());
  return {plain, node.output(0), node.output(1)};
}

struct ChannelMoments {
  double pixels = 0, mean = 0, squares = 0;
};

// Of one channel, from the groups'.
ChannelMoments combined(const Array& moments, int64_t channel) {
  const Shape& shape = moments.shape();
  const auto at = [&](int64_t group, int64_t row) {
    return static_cast<double>(moments.values<float>()[(group * 3 + row) * shape[2] + channel]);
  };
  ChannelMoments all;
  for (int64_t g = 0; g < shape[0]; ++g) all.pixels += at(g, 0);
  for (int64_t g = 0; g < shape[0]; ++g) all.mean += at(g, 0) * at(g, 1) / all.pixels;
  for (int64_t g = 0; g < shape[0]; ++g) {
    const double distance = at(g, 1) - all.mean;
    all.squares += at(g, 2) + at(g, 0) * distance * distance;
  }
  return all;
}

ChannelMoments of_values(const Array& y, int64_t channel) {
  const Shape& s = y.shape();
  std::vector<double> values;
  for (int64_t n = 0; n < s[0]; ++n) {
    const auto plane = y.values<float>().subspan(static_cast<size_t>((n * s[1] + channel) * s[2] * s[3]),
                                                 static_cast<size_t>(s[2] * s[3]));
    values.insert(values.end(), plane.begin(), plane.end());
  }
  ChannelMoments all{.pixels = static_cast<double>(values.size())};
  for (const double v : values) all.mean += v / all.pixels;
  for (const double v : values) all.squares += (v - all.mean) * (v - all.mean);
  return all;
}

TEST(ConvolutionMoments, AreThoseOfTheResult) {
  for (const ImageCase& c : image_cases())
    // The second: the mean is a thousand times the deviation.
    for (const auto& [low, high] : {std::pair(-1.0f, 1.0f), std::pair(99.9f, 100.1f)}) {
      SCOPED_TRACE(fmt::format("{}, values from {} to {}", c.name, low, high));
      const Shape filters = {c.filters, c.image[1], c.window, c.window};
      const std::vector<Array> results = evaluate_ops(
          [&](Inputs in) { return convolve_with_moments(in[0], in[1], c.options()); },
          {random_array(c.image, 1, low, high), random_array(filters, 2, low > 0 ? 0.01f : -0.1f, 0.1f)});
      ASSERT_EQ(results.size(), 3);
      EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].bytes()), 0);
      for (int64_t channel = 0; channel < c.filters; ++channel) {
        const ChannelMoments expected = of_values(results[1], channel), given = combined(results[2], channel);
        ASSERT_EQ(given.pixels, expected.pixels);
        const double deviation = std::sqrt(expected.squares / expected.pixels);
        // Floats round the means, the groups' as well, and each pixel's distance from another one.
        const double rounding = 1e-7 * std::abs(expected.mean);
        ASSERT_NEAR(given.mean, expected.mean, 2 * rounding + 1e-6 * deviation);
        ASSERT_NEAR(given.squares, expected.squares,
                    1e-5 * expected.squares + expected.pixels * rounding * deviation);
      }
    }
}

TEST(ConvolutionMoments, AreNotANumberWhereAPixelIsNot) {
  for (const float bad : {kNaN, kInfinity}) {
    std::vector<Array> inputs = {random_array({3, 16, 24, 24}, 1), random_array({16, 16, 3, 3}, 2)};
    inputs[0].values<float>()[1000] = bad;
    const Array moments = evaluate_ops(
        [](Inputs in) { return convolve_with_moments(in[0], in[1], {.padding = Padding::kSame}); },
        inputs)[2];
    for (int64_t channel = 0; channel < 16; ++channel)
      EXPECT_TRUE(std::isnan(combined(moments, channel).squares)) << channel;
  }
}

// relu(batch_norm(conv2d(x, w)) [+ residual]) and the gradients of half the sum of its squares.
std::vector<Tensor> unit_with_gradients(Inputs in, const ConvolutionOptions& options, bool has_residual) {
  Tensor y = batch_norm(conv2d(in[0], in[1], options), in[2], in[3], {.epsilon = 0.1}).y;
  if (has_residual) y = add(y, in[4]);
  std::vector<Tensor> results = {relu(y)};
  for (const Tensor& gradient : gradients(reduce_sum(mul(square(results[0]), 0.5f)), in.first(4)))
    results.push_back(gradient);
  return results;
}

TEST(ConvolutionMoments, KeepValuesAndGradients) {
  for (const ImageCase& c : image_cases())
    for (const bool has_residual : {false, true}) {
      SCOPED_TRACE(fmt::format("{}{}", c.name, has_residual ? " and a residual" : ""));
      std::vector<Array> inputs = {random_array(c.image, 1),
                                   random_array({c.filters, c.image[1], c.window, c.window}, 2, -0.1f, 0.1f),
                                   random_array({c.filters}, 3, 0.5f, 1.5f), random_array({c.filters}, 4)};
      Graph graph;
      const GraphScope scope(graph);
      const Tensor x = graph.input(0, inputs[0].type(), SourceLocation::current()),
                   w = graph.input(1, inputs[1].type(), SourceLocation::current());
      inputs.push_back(random_array(conv2d(x, w, c.options()).shape(), 5));
      // Expects the same with and without the rules, and the same bits on any number of threads. Gradients
      // are sums of thousands of terms, whose rounding is that of the largest of them.
      evaluate_ops([&](Inputs in) { return unit_with_gradients(in, c.options(), has_residual); }, inputs,
                   1e-3);
    }
}

TEST(ConvolutionMoments, AreTakenWhereTheKernelsGiveThem) {
  const auto types = [](int64_t channels, int64_t window = 3) {
    const auto floats = [](const Shape& shape) { return TensorType{DType::kFloat32, shape}; };
    return std::vector<TensorType>{floats({4, channels, 24, 24}),
                                   floats({channels, channels, window, window}), floats({channels}),
                                   floats({channels}), floats({4, channels, 24, 24})};
  };
  const auto unit = [](Inputs in) { return unit_with_gradients(in, {.padding = Padding::kSame}, true); };
  const auto takes = [&](const BuildMany& build, const std::vector<TensorType>& of,
                         const RuleOptions& rules = {}) {
    const std::string plan = plan_text(build, of, rules);
    const bool convolution = plan.find(" conv2d_moments ") != std::string::npos,
               normalisation = plan.find(" batch_norm_activation_of_moments ") != std::string::npos;
    EXPECT_EQ(convolution, normalisation) << plan;
    return normalisation;
  };
  EXPECT_TRUE(takes(unit, types(32)));
  EXPECT_FALSE(takes(unit, types(32, 1))) << "not Winograd's";
  EXPECT_FALSE(takes(unit, types(256))) << "a filter larger than a core's cache";
  EXPECT_FALSE(takes(unit, types(32), {.direct_convolutions = true}));
  EXPECT_TRUE(takes(unit, types(32), {.convolution_error = 1e-5}));
  EXPECT_FALSE(takes(unit, types(32), {.convolution_error = 9e-6}));
  if (bfloat16_support() == BFloat16Support::kNative) {
    EXPECT_FALSE(takes(unit, types(32), {.precision = Precision::kBFloat16}));
  }
  const auto without_activation = [](Inputs in) {
    return std::vector{batch_norm(conv2d(in[0], in[1], {.padding = Padding::kSame}), in[2], in[3]).y};
  };
  EXPECT_FALSE(takes(without_activation, types(32)));
  const auto read_by_another = [](Inputs in) {
    const Tensor x = conv2d(in[0], in[1], {.padding = Padding::kSame});
    return std::vector{relu(batch_norm(x, in[2], in[3]).y), mul(x, 2.0f)};
  };
  EXPECT_TRUE(takes(read_by_another, types(32)));
}

}  // namespace
}  // namespace mox::test
