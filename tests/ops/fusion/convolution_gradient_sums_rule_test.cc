// Gradients of a convolution's image that go on through relu and a batch normalisation.
#include "ops/fusion/internal/convolution_gradient_sums_rule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/fusion/default_rules.h"
#include "ops/normalisation/normalisation.h"
#include "ops/ops.h"
#include "tests/ops/fusion/convolution_epilogue_testing.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;

struct Unit {
  bool has_residual = false;    // added before relu
  bool has_another = false;     // whatever else reads the image
  bool has_sum_before = false;  // whose gradient comes first among the two
};

// in: the image before the normalisation, scale, offset, filter, residual and what the image is also
// multiplied by. Results: the convolution of relu(batch_norm(image) [+ residual]) and the gradients of half
// the sum of its squares for all inputs.
std::vector<Tensor> unit_with_gradients(Inputs in, const ImageCase& c, const Unit& unit) {
  Tensor x = batch_norm(in[0], in[1], in[2], {.epsilon = 0.1}).y;
  if (unit.has_residual) x = add(x, in[4]);
  x = relu(x);
  const auto convolve = [&] { return reduce_sum(mul(square(conv2d(x, in[3], c.options())), 0.5f)); };
  Tensor loss;
  if (unit.has_another) {
    const Tensor first = unit.has_sum_before ? convolve() : reduce_sum(mul(x, in[5]));
    const Tensor second = unit.has_sum_before ? reduce_sum(mul(x, in[5])) : convolve();
    loss = add(first, second);
  } else {
    loss = convolve();
  }
  std::vector<Tensor> results = {loss};
  for (const Tensor& gradient : gradients(loss, in))
    if (gradient.defined()) results.push_back(gradient);
  return results;
}

std::vector<Array> inputs_of(const ImageCase& c) {
  const int64_t channels = c.image[1];
  return {
      random_array(c.image, 1),    random_array({channels}, 2, 0.5f, 1.5f),
      random_array({channels}, 3), random_array({c.filters, channels, c.window, c.window}, 4, -0.1f, 0.1f),
      random_array(c.image, 5),    random_array(c.image, 6)};
}

std::vector<Unit> units() {
  return {{},
          {.has_residual = true},
          {.has_another = true},
          {.has_residual = true, .has_another = true},
          {.has_residual = true, .has_another = true, .has_sum_before = true}};
}

TEST(ConvolutionGradientSums, KeepGradients) {
  for (const ImageCase& c : image_cases())
    for (const Unit& unit : units()) {
      SCOPED_TRACE(fmt::format("{}, residual {}, another {}, first {}", c.name, unit.has_residual,
                               unit.has_another, unit.has_sum_before));
      // Expects the same with and without the rules, and the same bits on any number of threads. Gradients
      // are sums of thousands of terms, whose rounding is that of the largest of them.
      evaluate_ops([&](Inputs in) { return unit_with_gradients(in, c, unit); }, inputs_of(c), 2e-3);
    }
}

std::vector<TensorType> types_of(const ImageCase& c) {
  std::vector<TensorType> types;
  for (const Array& input : inputs_of(c)) types.push_back(input.type());
  return types;
}

TEST(ConvolutionGradientSums, AreTakenWhereTheKernelsGiveThem) {
  const auto takes = [](const ImageCase& c, const BuildMany& build, const RuleOptions& rules = {}) {
    const std::string plan = plan_text(build, types_of(c), rules);
    const bool convolution = plan.find(" conv2d_input_gradient_sums ") != std::string::npos,
               normalisation = plan.find(" batch_norm_gradient_of_sums ") != std::string::npos;
    EXPECT_EQ(convolution, normalisation) << plan;
    return normalisation;
  };
  for (const ImageCase& c : image_cases())
    for (const Unit& unit : units()) {
      const auto build = [&](Inputs in) { return unit_with_gradients(in, c, unit); };
      EXPECT_TRUE(takes(c, build)) << c.name;
      EXPECT_FALSE(takes(c, build, {.direct_convolutions = true})) << c.name;
      EXPECT_FALSE(takes(c, build, {.convolution_error = 1e-6})) << c.name;
      if (bfloat16_support() == BFloat16Support::kNative) {
        EXPECT_FALSE(takes(c, build, {.precision = Precision::kBFloat16})) << c.name;
      }
    }
  const ImageCase pointwise{"not Winograd's", {4, 32, 24, 24}, 32, 1},
      large{"a filter larger than a core's cache", {4, 256, 24, 24}, 256};
  for (const ImageCase& c : {pointwise, large})
    EXPECT_FALSE(takes(c, [&](Inputs in) { return unit_with_gradients(in, c, {}); })) << c.name;
  // Something else wants what the convolution gives.
  const ImageCase c = image_cases()[0];
  const auto fetched = [&](Inputs in) {
    const Tensor x = relu(batch_norm(in[0], in[1], in[2]).y);
    const Tensor loss = reduce_sum(square(conv2d(x, in[3], {.padding = Padding::kSame})));
    return gradients(loss, std::vector{x, in[0]});
  };
  EXPECT_FALSE(takes(c, fetched));
  const auto clipped = [&](Inputs in) {
    const Tensor x = clip_by_value(batch_norm(in[0], in[1], in[2]).y, 0, 6);
    return gradients(reduce_sum(square(conv2d(x, in[3], {.padding = Padding::kSame}))), in.first(4));
  };
  EXPECT_FALSE(takes(c, clipped));
}

}  // namespace
}  // namespace mox::test
