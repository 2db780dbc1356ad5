// Convolutions of what a batch normalisation makes of a convolution, a few images at a time.
#include "ops/fusion/internal/convolution_of_normalised_rule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/normalisation/normalisation.h"
#include "ops/ops.h"
#include "tests/ops/fusion/convolution_epilogue_testing.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;

// Cuts into one and several images, a last group of fewer images, and images that go around the caches.
std::vector<ImageCase> chain_cases() {
  return {{"an image of several chunks", {11, 16, 32, 32}, 16},
          {"two images with a chunk", {9, 32, 16, 16}, 32},
          {"cut tiles", {10, 16, 21, 22}, 16},
          {"small images", {40, 32, 7, 8}, 32},
          {"around the caches", {65, 16, 32, 32}, 16}};
}

struct Chain {
  bool has_residual = false;  // added before the relu
  bool has_another = false;   // whatever else reads the normalised image, later
};

// in: an image, scale, offset, filter, scale, offset, filter, residual. Two convolutions with batch_norm [+
// residual] and relu; results: mean and variance of the first, four times the sum of an image's squares, on
// average, and its gradients.
std::vector<Tensor> chain_with_gradients(Inputs in, const ImageCase& c, const Chain& chain) {
  const BatchNormResult first = batch_norm(conv2d(in[0], in[3], c.options()), in[1], in[2], {.epsilon = 0.1});
  const Tensor z = relu(chain.has_residual ? add(first.y, in[7]) : first.y);
  const Tensor y = batch_norm(conv2d(z, in[6], c.options()), in[4], in[5], {.epsilon = 0.2}).y;
  const Tensor result = relu(chain.has_another ? add(y, z) : y);
  const Tensor loss = reduce_sum(mul(square(result), 4.0f / static_cast<float>(c.image[0])));
  std::vector<Tensor> results = {loss, first.mean, first.variance};
  for (const Tensor& gradient : gradients(loss, in))
    if (gradient.defined()) results.push_back(gradient);
  return results;
}

std::vector<Array> inputs_of_chain(const ImageCase& c) {
  const int64_t channels = c.image[1];
  const Shape filter = {channels, channels, c.window, c.window};
  return {random_array(c.image, 1),
          random_array({channels}, 2, 0.5f, 1.5f),
          random_array({channels}, 3),
          random_array(filter, 4, -0.1f, 0.1f),
          random_array({channels}, 5, 0.5f, 1.5f),
          random_array({channels}, 6),
          random_array(filter, 7, -0.1f, 0.1f),
          random_array(c.image, 8)};
}

std::vector<Chain> chains() {
  return {{}, {.has_residual = true}, {.has_another = true}, {.has_residual = true, .has_another = true}};
}

TEST(ConvolutionOfNormalised, KeepsValuesAndGradients) {
  for (const ImageCase& c : chain_cases())
    for (const Chain& chain : chains()) {
      SCOPED_TRACE(fmt::format("{}, residual {}, another {}", c.name, chain.has_residual, chain.has_another));
      // Expects the same with and without the rules, and the same bits on any number of threads. Gradients
      // are sums of thousands of terms, whose rounding is that of the largest of them.
      evaluate_ops([&](Inputs in) { return chain_with_gradients(in, c, chain); }, inputs_of_chain(c), 2e-3);
    }
}

// The moments are those of the convolution's result, also where its image is normalised again.
TEST(ConvolutionOfNormalised, GivesItsMomentsToNoOtherNormalisation) {
  for (const int64_t channels : {16, 32}) {
    SCOPED_TRACE(channels);
    const ImageCase c{"", {8, channels, 16, 16}, channels};
    std::vector<Array> inputs = inputs_of_chain(c);
    evaluate_ops(
        [&](Inputs in) {
          const Tensor z = relu(batch_norm(conv2d(in[0], in[3], c.options()), in[1], in[2]).y);
          const Tensor first = relu(batch_norm(conv2d(z, in[6], c.options()), in[4], in[5]).y);
          const BatchNormResult again = batch_norm(z, in[2], in[1]);
          return std::vector{reduce_sum(first), again.mean, again.variance, relu(again.y)};
        },
        inputs, 1e-4);
  }
}

std::string plan_of_chain(const ImageCase& c, const BuildMany& build, const RuleOptions& rules = {}) {
  std::vector<TensorType> types;
  for (const Array& input : inputs_of_chain(c)) types.push_back(input.type());
  return plan_text(build, types, rules);
}
bool has_op(const std::string& plan, const std::string& op) {
  return plan.find(" " + op + " ") != std::string::npos;
}

TEST(ConvolutionOfNormalised, StandsWhereTheKernelFits) {
  for (const ImageCase& c : chain_cases())
    for (const Chain& chain : chains()) {
      const auto build = [&](Inputs in) { return chain_with_gradients(in, c, chain); };
      const std::string plan = plan_of_chain(c, build);
      EXPECT_TRUE(has_op(plan, "conv2d_of_normalised")) << c.name;
      EXPECT_TRUE(has_op(plan, "batch_norm_statistics_of_moments")) << c.name;
      EXPECT_FALSE(has_op(plan_of_chain(c, build, {.direct_convolutions = true}), "conv2d_of_normalised"));
      EXPECT_FALSE(has_op(plan_of_chain(c, build, {.convolution_error = 1e-6}), "conv2d_of_normalised"));
    }
  for (const ImageCase& c : {ImageCase{"many channels", {9, 48, 16, 16}, 48},
                             ImageCase{"smaller results", {9, 16, 24, 24}, 16, 3, 1, Padding::kValid}})
    EXPECT_FALSE(has_op(plan_of_chain(c, [&](Inputs in) { return chain_with_gradients(in, c, {}); }),
                        "conv2d_of_normalised"))
        << c.name;
}

// What normalises the convolution's result, and whether something reads the normalised image before the
// convolution does.
TEST(ConvolutionOfNormalised, NeedsTheFirstReaderAndAnotherNormalisation) {
  const ImageCase c = chain_cases()[0];
  const auto forward = [&](Inputs in, bool is_read_before, bool is_normalised) -> std::vector<Tensor> {
    const Tensor z = relu(batch_norm(conv2d(in[0], in[3], c.options()), in[1], in[2]).y);
    const Tensor before = is_read_before ? square(z) : in[7];
    const Tensor y = conv2d(z, in[6], c.options());
    return {before, is_normalised ? relu(batch_norm(y, in[4], in[5]).y) : y};
  };
  const auto is_made = [&](bool is_read_before, bool is_normalised) {
    return has_op(plan_of_chain(c, [&](Inputs in) { return forward(in, is_read_before, is_normalised); }),
                  "conv2d_of_normalised");
  };
  EXPECT_TRUE(is_made(false, true));
  EXPECT_FALSE(is_made(true, true));
  EXPECT_FALSE(is_made(false, false));
}

// The normalised image goes to memory only if something wants it, here the plan's caller.
TEST(ConvolutionOfNormalised, GivesTheNormalisedImageToWhoWantsIt) {
  for (const ImageCase& c : chain_cases()) {
    SCOPED_TRACE(c.name);
    evaluate_ops(
        [&](Inputs in) -> std::vector<Tensor> {
          const Tensor z = relu(batch_norm(conv2d(in[0], in[3], c.options()), in[1], in[2]).y);
          return {z, relu(batch_norm(conv2d(z, in[6], c.options()), in[4], in[5]).y)};
        },
        inputs_of_chain(c), 1e-4);
  }
}

}  // namespace
}  // namespace mox::test
