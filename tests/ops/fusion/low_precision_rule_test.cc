#include "ops/fusion/internal/low_precision_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/convolution/conv2d.h"
#include "ops/fusion/default_rules.h"
#include "ops/gradients.h"
#include "ops/matmul/matmul.h"
#include "ops/normalisation/normalisation.h"
#include "ops/pooling/pooling.h"
#include "ops/reduction/reduction.h"
#include "tests/support/evaluate.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;

std::vector<Array> evaluate_in(Precision precision, const BuildMany& build, const std::vector<Array>& inputs,
                               int threads = 2) {
  Graph graph;
  GraphScope scope(graph);
  std::vector<Tensor> tensors;
  for (const Array& array : inputs)
    tensors.push_back(graph.input(static_cast<int>(tensors.size()), array.type(), SourceLocation::current()));
  const std::vector<Tensor> fetches = build(tensors);
  return evaluate(fetches, inputs,
                  {.threads = threads,
                   .compile = {.rules = default_rules({.precision = precision}), .convert = convert_layout}});
}

// |a - b| / |b|, as vectors.
double relative_distance(const Array& a, const Array& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.values<float>().size(); ++i) {
    const double x = a.values<float>()[i], y = b.values<float>()[i];
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(difference / std::max(size, 1e-30));
}

// A residual unit, a convolution with bias, and a dense layer, with all gradients.
std::vector<Tensor> network(Inputs in) {
  Tensor x = relu(batch_norm(conv2d(in[0], in[1]), in[2], in[3]).y);
  x = relu(add(batch_norm(conv2d(x, in[4]), in[2], in[3]).y, x));
  x = relu(bias_add(conv2d(x, in[4]), in[3]));
  const Tensor y = matmul(reduce_sum(x, {.axes = {2, 3}}), in[5]);
  const Tensor loss = reduce_sum(mul(y, y));
  std::vector<Tensor> results = {y};
  for (const Tensor& gradient : gradients(loss, in)) results.push_back(gradient);
  return results;
}
std::vector<Array> network_inputs() {
  return {random_array({4, 16, 10, 10}, 1),
          random_array({32, 16, 3, 3}, 2, -0.2f, 0.2f),
          random_array({32}, 3, 0.5f, 1.5f),
          random_array({32}, 4),
          random_array({32, 32, 3, 3}, 5, -0.1f, 0.1f),
          random_array({32, 24}, 6)};
}

class LowPrecision : public testing::Test {
 protected:
  void SetUp() override {
    if (bfloat16_support() == BFloat16Support::kNone) GTEST_SKIP() << "needs AVX-512, for bfloat16";
  }
};

TEST_F(LowPrecision, AgreesWithFloat32WithinItsRounding) {
  const auto exact = evaluate_in(Precision::kFloat32, network, network_inputs());
  const auto low = evaluate_in(Precision::kBFloat16, network, network_inputs());
  for (size_t i = 0; i < exact.size(); ++i) {
    SCOPED_TRACE(i);
    const double distance = relative_distance(low[i], exact[i]);
    // Rounding decides about the sign of some inputs of a relu, which turns whole gradients on and off.
    EXPECT_LT(distance, i == 0 ? 0.02 : 0.15);
    EXPECT_GT(distance, 1e-5);  // it is another precision
  }
}

// Rounded to bfloat16, as is the gradient that comes back.
Tensor rounded(const Tensor& x) { return cast(cast(x, DType::kBFloat16), DType::kFloat32); }

Array rounded(Array array) {
  for (float& value : array.values<float>()) value = static_cast<float>(BFloat16(value));
  return array;
}

// Each element within one unit of bfloat16's last place, and what sums in another order differ by.
void expect_within_a_rounding(const Array& low, const Array& exact) {
  const auto a = low.values<float>(), b = exact.values<float>();
  float largest = 0;
  for (float value : b) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < b.size(); ++i) ASSERT_NEAR(a[i], b[i], std::abs(b[i]) / 256 + 1e-5f * largest) << i;
}

// The last stages of a network for larger images, where one stride goes over the whole row.
TEST_F(LowPrecision, TakesImagesThatAreNarrowerThanTheStride) {
  for (const int64_t width : {1, 2, 3})
    for (const int64_t window : {2, 3, 5})
      for (const int64_t stride : {2, 4}) {
        SCOPED_TRACE(testing::Message() << "width " << width << " window " << window << " stride " << stride);
        const BuildMany build = [&](Inputs in) {
          const Tensor y = conv2d(in[0], in[1], {.strides = {2, stride}});
          std::vector<Tensor> results = {y};
          for (const Tensor& gradient : gradients(reduce_sum(mul(y, y)), in)) results.push_back(gradient);
          return results;
        };
        const std::vector<Array> inputs = {random_array({2, 16, 4, width}, 1),
                                           random_array({16, 16, window, window}, 2)};
        const auto exact = evaluate_in(Precision::kFloat32, build, inputs);
        const auto low = evaluate_in(Precision::kBFloat16, build, inputs);
        for (size_t i = 0; i < exact.size(); ++i) EXPECT_LT(relative_distance(low[i], exact[i]), 0.02) << i;
      }
}

struct Layer {
  Shape image, filter;
  ConvolutionOptions options;
};

TEST_F(LowPrecision, TakesImagesThatAreLowerThanTheirPadding) {
  for (const Layer& layer :
       {Layer{{2, 128, 1, 3}, {16, 128, 5, 5}, {}}, Layer{{2, 128, 2, 5}, {16, 128, 7, 5}, {}},
        Layer{{2, 128, 1, 1}, {16, 128, 5, 5}, {}}}) {
    SCOPED_TRACE(to_string(layer.image));
    const BuildMany build = [&](Inputs in) {
      const Tensor y = conv2d(in[0], in[1], layer.options);
      std::vector<Tensor> results = {y};
      for (const Tensor& gradient : gradients(reduce_sum(mul(y, y)), in)) results.push_back(gradient);
      return results;
    };
    const std::vector<Array> inputs = {random_array(layer.image, 1), random_array(layer.filter, 2)};
    const auto exact = evaluate_in(Precision::kFloat32, build, inputs);
    const auto low = evaluate_in(Precision::kBFloat16, build, inputs);
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_LT(relative_distance(low[i], exact[i]), 0.02) << i;
  }
}

// One layer at a time, on numbers that bfloat16 has: result, gradient of the image and of the filter are
// float32's, rounded.
TEST_F(LowPrecision, ALayerIsFloat32sRounded) {
  for (const Layer& layer :
       {Layer{{3, 16, 12, 12}, {32, 16, 3, 3}, {}}, Layer{{3, 16, 12, 12}, {32, 16, 1, 1}, {}},
        Layer{{3, 8, 13, 13}, {24, 8, 5, 5}, {.strides = {2, 2}, .padding = Padding::of(2)}},
        Layer{{2, 16, 10, 10}, {16, 1, 3, 3}, {.groups = 16}}}) {
    SCOPED_TRACE(to_string(layer.filter));
    const auto build = [&](Inputs in) {
      const Tensor y = conv2d(in[0], in[1], layer.options);
      std::vector<Tensor> results = {y};
      for (const Tensor& gradient : gradients(reduce_sum(mul(y, in[2])), in.first(2)))
        results.push_back(gradient);
      return results;
    };
    std::vector<Array> inputs = {rounded(random_array(layer.image, 1)),
                                 rounded(random_array(layer.filter, 2))};
    const auto shape_only = [&](Inputs in) {
      return std::vector<Tensor>{conv2d(in[0], in[1], layer.options)};
    };
    inputs.push_back(
        rounded(random_array(evaluate_in(Precision::kFloat32, shape_only, inputs)[0].shape(), 3)));
    const auto exact = evaluate_in(Precision::kFloat32, build, inputs),
               low = evaluate_in(Precision::kBFloat16, build, inputs);
    for (size_t i = 0; i < exact.size(); ++i) {
      SCOPED_TRACE(i);
      expect_within_a_rounding(low[i], exact[i]);
    }
  }
}

// The result is float32's to the bit, and the gradient is its sum of the windows, rounded once.
TEST_F(LowPrecision, MaxPoolingStaysInBFloat16) {
  for (const int64_t channels : {16, 12}) {
    SCOPED_TRACE(channels);
    const Pool2dOptions overlapping{.window = {3, 3}, .strides = {2, 2}, .padding = Padding::kSame};
    const auto build = [&](bool rounds) {
      return [&, rounds](Inputs in) {
        const auto round = [&](const Tensor& x) { return rounds ? rounded(x) : x; };
        const Tensor image = round(conv2d(round(in[0]), round(in[1])));
        const Tensor y = max_pool(image, overlapping);
        const Tensor next = round(conv2d(round(y), round(in[2])));
        std::vector<Tensor> results = {y, next};
        for (const Tensor& gradient : gradients(reduce_sum(mul(next, round(in[3]))), in.first(3)))
          results.push_back(gradient);
        return results;
      };
    };
    std::vector<Array> inputs = {random_array({2, 8, 13, 14}, 1), random_array({channels, 8, 1, 1}, 2),
                                 random_array({16, channels, 1, 1}, 3), random_array({2, 16, 7, 7}, 4)};
    for (Array& input : inputs) input = rounded(input);
    const auto exact = evaluate_in(Precision::kFloat32, build(true), inputs),
               low = evaluate_in(Precision::kBFloat16, build(false), inputs);
    expect_within_a_rounding(low[0], exact[0]);
    for (size_t i = 1; i < exact.size(); ++i) EXPECT_LT(relative_distance(low[i], exact[i]), 4e-3) << i;

    Graph graph;
    GraphScope scope(graph);
    std::vector<Tensor> tensors;
    for (const Array& array : inputs)
      tensors.push_back(
          graph.input(static_cast<int>(tensors.size()), array.type(), SourceLocation::current()));
    GraphRewriter rewriter(graph, build(false)(tensors));
    for (const NamedRule& rule : default_rules({.precision = Precision::kBFloat16}))
      rewriter.apply(rule.rule);
    int pools = 0;
    for (const auto& node : rewriter.graph().nodes()) {
      if (!std::string_view(node->op->name).starts_with("max_pool")) continue;
      ++pools;
      EXPECT_EQ(node->inputs[0].dtype(), DType::kBFloat16) << node->name;
      EXPECT_EQ(node->outputs[0].dtype, DType::kBFloat16) << node->name;
    }
    EXPECT_EQ(pools, 2);
  }
}

// In the layout that the layer before it gives: with channels last on some processors, in blocks
// of them on others.
TEST_F(LowPrecision, ADepthwiseLayerBehindAnotherIsFloat32sRounded) {
  const auto build = [](Inputs in) {
    const Tensor x = conv2d(in[0], in[1]);
    const Tensor y = conv2d(x, in[2], {.strides = {2, 2}, .groups = 48});
    std::vector<Tensor> results = {y};
    for (const Tensor& gradient : gradients(reduce_sum(mul(y, y)), in)) results.push_back(gradient);
    return results;
  };
  const auto in_two_steps = [](Inputs in) {
    const Tensor x = rounded(conv2d(in[0], in[1]));
    const Tensor y = rounded(conv2d(x, in[2], {.strides = {2, 2}, .groups = 48}));
    std::vector<Tensor> results = {y};
    for (const Tensor& gradient : gradients(reduce_sum(mul(y, y)), in)) results.push_back(gradient);
    return results;
  };
  const std::vector<Array> inputs = {rounded(random_array({3, 64, 13, 11}, 1)),
                                     rounded(random_array({48, 64, 1, 1}, 2)),
                                     rounded(random_array({48, 1, 3, 3}, 3))};
  const auto exact = evaluate_in(Precision::kFloat32, in_two_steps, inputs),
             low = evaluate_in(Precision::kBFloat16, build, inputs);
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_LT(relative_distance(low[i], exact[i]), 1e-2) << i;
}

TEST_F(LowPrecision, AMatrixProductSumsInFloat32) {
  const auto build = [](Inputs in) {
    const Tensor y = matmul(in[0], in[1]);
    std::vector<Tensor> results = {y};
    for (const Tensor& gradient : gradients(reduce_sum(mul(y, in[2])), in.first(2)))
      results.push_back(gradient);
    return results;
  };
  const std::vector<Array> inputs = {rounded(random_array({20, 300}, 1)), rounded(random_array({300, 40}, 2)),
                                     rounded(random_array({20, 40}, 3))};
  const auto exact = evaluate_in(Precision::kFloat32, build, inputs),
             low = evaluate_in(Precision::kBFloat16, build, inputs);
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_LT(relative_distance(low[i], exact[i]), 1e-6) << i;
}

// The network above in float32, rounded where bfloat16 rounds: what remains is that some gradients are
// rounded once more here.
std::vector<Tensor> rounded_network(Inputs in) {
  const auto convolution = [](const Tensor& x, const Tensor& w) { return conv2d(x, rounded(w)); };
  Tensor x = rounded(relu(batch_norm(rounded(convolution(rounded(in[0]), in[1])), in[2], in[3]).y));
  x = rounded(relu(add(batch_norm(rounded(convolution(x, in[4])), in[2], in[3]).y, x)));
  x = rounded(relu(rounded(bias_add(convolution(x, in[4]), in[3]))));
  const Tensor y = matmul(rounded(reduce_sum(x, {.axes = {2, 3}})), rounded(in[5]));
  const Tensor loss = reduce_sum(mul(y, y));
  std::vector<Tensor> results = {y};
  for (const Tensor& gradient : gradients(loss, in)) results.push_back(gradient);
  return results;
}

TEST_F(LowPrecision, ANetworkAndItsGradientsAreFloat32sRoundedAtTheSamePlaces) {
  const auto exact = evaluate_in(Precision::kFloat32, rounded_network, network_inputs());
  const auto low = evaluate_in(Precision::kBFloat16, network, network_inputs());
  for (size_t i = 0; i < exact.size(); ++i)
    EXPECT_LT(relative_distance(low[i], exact[i]), i == 0 ? 1e-3 : 1e-2) << i;
}

TEST_F(LowPrecision, RunsWhatIsDenseInBFloat16AndKeepsTheRest) {
  Graph graph;
  GraphScope scope(graph);
  std::vector<Tensor> tensors;
  for (const Array& array : network_inputs())
    tensors.push_back(graph.input(static_cast<int>(tensors.size()), array.type(), SourceLocation::current()));
  GraphRewriter rewriter(graph, network(tensors));
  for (const NamedRule& rule : default_rules({.precision = Precision::kBFloat16})) rewriter.apply(rule.rule);
  int products = 0, normalisations = 0;
  for (const auto& node : rewriter.graph().nodes()) {
    const std::string_view op = node->op->name;
    if (op.starts_with("conv2d") || op.starts_with("matmul")) {
      ++products;
      EXPECT_EQ(node->inputs[0].dtype(), DType::kBFloat16) << node->name;
      EXPECT_EQ(node->inputs[1].dtype(), DType::kBFloat16) << node->name;
      const bool gives_image = op != "conv2d_filter_gradient" && !op.starts_with("matmul");
      EXPECT_EQ(node->outputs[0].dtype, gives_image ? DType::kBFloat16 : DType::kFloat32) << node->name;
    } else if (op.starts_with("batch_norm")) {
      ++normalisations;
      EXPECT_EQ(node->inputs[0].dtype(), DType::kBFloat16) << node->name;
      EXPECT_EQ(node->outputs[0].dtype, DType::kBFloat16) << node->name;
      EXPECT_EQ(node->outputs[1].dtype, DType::kFloat32) << node->name;
    }
  }
  EXPECT_EQ(products, 12);  // three convolutions and a matrix product, with two gradients each
  EXPECT_EQ(normalisations, 4);
  for (const Tensor& output : rewriter.outputs()) EXPECT_EQ(output.dtype(), DType::kFloat32);
}

TEST_F(LowPrecision, LeavesAGraphWithoutProductsAlone) {
  const auto build = [](Inputs in) { return std::vector<Tensor>{relu(add(mul(in[0], in[1]), 0.1f))}; };
  const std::vector<Array> inputs = {random_array({5, 7}, 1), random_array({5, 7}, 2)};
  EXPECT_EQ(relative_distance(evaluate_in(Precision::kBFloat16, build, inputs)[0],
                              evaluate_in(Precision::kFloat32, build, inputs)[0]),
            0);
}

TEST_F(LowPrecision, KeepsNaN) {
  std::vector<Array> inputs = network_inputs();
  inputs[0].values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const Array y = evaluate_in(Precision::kBFloat16, network, inputs)[0];
  EXPECT_TRUE(std::isnan(y.values<float>()[0]));
}

}  // namespace
}  // namespace mox::test
