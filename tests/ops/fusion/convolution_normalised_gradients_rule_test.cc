// Both gradients of a convolution between two batch normalisations, a few images at a time.
#include "ops/fusion/internal/convolution_normalised_gradients_rule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/normalisation/normalisation.h"
#include "ops/ops.h"
#include "tests/ops/fusion/convolution_epilogue_testing.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;

// Cuts into one and several images, with and without tiles to spare, and a last group of fewer images.
std::vector<ImageCase> middle_cases() {
  return {{"an image of several chunks", {11, 16, 32, 32}, 16},
          {"one image with a chunk", {9, 16, 24, 24}, 16},
          {"two images with a chunk", {9, 32, 16, 16}, 32},
          {"cut tiles", {10, 16, 21, 22}, 16},
          {"small images", {40, 32, 7, 8}, 32},
          {"around the caches", {65, 16, 32, 32}, 16}};
}

struct MiddleUnit {
  bool has_residual = false;  // added before the first relu
  bool has_another = false;   // whatever else reads the convolution's image
};

// in: an image, scale, offset, filter, scale, offset, filter, residual and what the image of the first
// convolution is also multiplied by. Two units of batch_norm [+ residual], relu and convolution; results:
// half the sum of the squares and its gradients.
std::vector<Tensor> two_units_with_gradients(Inputs in, const ImageCase& c, const MiddleUnit& unit) {
  Tensor x = batch_norm(in[0], in[1], in[2], {.epsilon = 0.1}).y;
  if (unit.has_residual) x = add(x, in[7]);
  x = relu(x);
  const Tensor middle = conv2d(x, in[3], c.options());
  const Tensor y = conv2d(relu(batch_norm(middle, in[4], in[5], {.epsilon = 0.2}).y), in[6], c.options());
  Tensor loss = reduce_sum(mul(square(y), 0.5f));
  if (unit.has_another) loss = add(loss, reduce_sum(mul(x, in[8])));
  std::vector<Tensor> results = {loss};
  for (const Tensor& gradient : gradients(loss, in))
    if (gradient.defined()) results.push_back(gradient);
  return results;
}

std::vector<Array> inputs_of_units(const ImageCase& c) {
  const int64_t channels = c.image[1];
  const Shape filter = {channels, channels, c.window, c.window};
  return {random_array(c.image, 1),
          random_array({channels}, 2, 0.5f, 1.5f),
          random_array({channels}, 3),
          random_array(filter, 4, -0.1f, 0.1f),
          random_array({channels}, 5, 0.5f, 1.5f),
          random_array({channels}, 6),
          random_array(filter, 7, -0.1f, 0.1f),
          random_array(c.image, 8),
          random_array(c.image, 9)};
}

std::vector<MiddleUnit> middle_units() {
  return {{}, {.has_residual = true}, {.has_another = true}, {.has_residual = true, .has_another = true}};
}

TEST(ConvolutionNormalisedGradients, KeepGradients) {
  for (const ImageCase& c : middle_cases())
    for (const MiddleUnit& unit : middle_units()) {
      SCOPED_TRACE(fmt::format("{}, residual {}, another {}", c.name, unit.has_residual, unit.has_another));
      // Expects the same with and without the rules, and the same bits on any number of threads. Gradients
      // are sums of thousands of terms, whose rounding is that of the largest of them.
      evaluate_ops([&](Inputs in) { return two_units_with_gradients(in, c, unit); }, inputs_of_units(c),
                   2e-3);
    }
}

bool is_fused(const ImageCase& c, const BuildMany& build, const RuleOptions& rules = {}) {
  std::vector<TensorType> types;
  for (const Array& input : inputs_of_units(c)) types.push_back(input.type());
  return plan_text(build, types, rules).find(" conv2d_normalised_gradients ") != std::string::npos;
}

TEST(ConvolutionNormalisedGradients, AreTakenWhereTheKernelFits) {
  for (const ImageCase& c : middle_cases())
    for (const MiddleUnit& unit : middle_units()) {
      const auto build = [&](Inputs in) { return two_units_with_gradients(in, c, unit); };
      EXPECT_TRUE(is_fused(c, build)) << c.name;
      EXPECT_FALSE(is_fused(c, build, {.direct_convolutions = true})) << c.name;
      EXPECT_FALSE(is_fused(c, build, {.convolution_error = 1e-6})) << c.name;
    }
  for (const ImageCase& c :
       {ImageCase{"many channels", {9, 48, 16, 16}, 48}, ImageCase{"large images", {3, 32, 56, 56}, 32},
        ImageCase{"tiles that fill no chunk", {3, 16, 20, 20}, 16},
        ImageCase{"window of 5", {9, 16, 24, 24}, 16, 5},
        ImageCase{"smaller results", {9, 16, 24, 24}, 16, 3, 1, Padding::kValid}})
    EXPECT_FALSE(is_fused(c, [&](Inputs in) { return two_units_with_gradients(in, c, {}); })) << c.name;
  // The gradient of the filter alone rounds more than is wanted.
  const ImageCase many_tiles = middle_cases()[0];
  const auto units = [&](Inputs in) { return two_units_with_gradients(in, many_tiles, {}); };
  EXPECT_TRUE(is_fused(many_tiles, units, {.convolution_error = 8.6e-6}));
  EXPECT_FALSE(is_fused(many_tiles, units, {.convolution_error = 8e-6}));
  // Something else wants the gradient of the convolution's result, or the filter has none.
  const ImageCase c = middle_cases()[0];
  const auto some_gradients = [&](Inputs in, bool of_middle) {
    const Tensor x = relu(batch_norm(in[0], in[1], in[2]).y);
    const Tensor middle = conv2d(x, in[3], c.options());
    const Tensor y = conv2d(relu(batch_norm(middle, in[4], in[5]).y), in[6], c.options());
    return gradients(reduce_sum(square(y)), std::vector{in[0], of_middle ? middle : in[1]});
  };
  EXPECT_FALSE(is_fused(c, [&](Inputs in) { return some_gradients(in, true); }));
  EXPECT_FALSE(is_fused(c, [&](Inputs in) { return some_gradients(in, false); }));
}

}  // namespace
}  // namespace mox::test
