#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/normalisation/normalisation.h"
#include "runtime/base/error.h"
#include "tests/ops/kernel_testing.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

constexpr double kEpsilon = 1e-3;

struct Reference {
  Array y, mean, variance;
};

// By the formula, in double precision.
Reference reference(const Array& x, const Array& scale, const Array& offset, const Array* mean,
                    const Array* variance) {
  const Shape& shape = x.shape();
  int64_t pixels = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) pixels *= shape[axis];
  Reference result{Array(x.type()), Array(scale.type()), Array(scale.type())};
  for (int64_t c = 0; c < shape[1]; ++c) {
    const auto channel = static_cast<size_t>(c);
    auto each = [&](const std::function<void(size_t)>& visit) {
      for (int64_t n = 0; n < shape[0]; ++n)
        for (int64_t p = 0; p < pixels; ++p) visit(static_cast<size_t>((n * shape[1] + c) * pixels + p));
    };
    const auto values = static_cast<double>(shape[0] * pixels);
    double m = 0, v = 0;
    if (mean) {
      m = static_cast<double>(mean->values<float>()[channel]);
      v = static_cast<double>(variance->values<float>()[channel]);
    } else {
      each([&](size_t i) { m += static_cast<double>(x.values<float>()[i]) / values; });
      each([&](size_t i) { v += std::pow(static_cast<double>(x.values<float>()[i]) - m, 2) / values; });
    }
    result.mean.values<float>()[channel] = static_cast<float>(m);
    result.variance.values<float>()[channel] = static_cast<float>(v);
    each([&](size_t i) {
      const double normal = (static_cast<double>(x.values<float>()[i]) - m) / std::sqrt(v + kEpsilon);
      result.y.values<float>()[i] =
          static_cast<float>(normal * static_cast<double>(scale.values<float>()[channel]) +
                             static_cast<double>(offset.values<float>()[channel]));
    });
  }
  return result;
}

class BatchNormTest : public testing::TestWithParam<Shape> {
 protected:
  Shape shape = GetParam();
  Array x = random_array(shape, 1), scale = random_array({shape[1]}, 2, 0.5f, 1.5f),
        offset = random_array({shape[1]}, 3), mean = random_array({shape[1]}, 4),
        variance = random_array({shape[1]}, 5, 0.5f, 2.0f);
  void train() const {
    const Reference expected = reference(x, scale, offset, nullptr, nullptr);
    const auto build = [](std::span<const Tensor> in) {
      const BatchNormResult result = batch_norm(in[0], in[1], in[2], {.epsilon = kEpsilon});
      return std::vector<Tensor>{result.y, result.mean, result.variance};
    };
    const std::vector<Array> results = evaluate_ops(build, {x, scale, offset});
    expect_near(results[0], expected.y, 1e-5);
    expect_near(results[1], expected.mean, 1e-6);
    expect_near(results[2], expected.variance, 1e-6);
  }
  void infer() const {
    const Reference expected = reference(x, scale, offset, &mean, &variance);
    const Array y = evaluate_op(
        [](std::span<const Tensor> in) {
          return batch_norm_inference(in[0], in[1], in[2], in[3], in[4], {.epsilon = kEpsilon});
        },
        {x, scale, offset, mean, variance});
    expect_near(y, expected.y, 1e-5);
  }
  std::vector<Layout> layouts() const {
    std::vector<Layout> result = {Layout::plain(x.type())};
    if (shape.rank() != 4 || shape.elements() == 0) return result;
    const int64_t n = shape[0], c = shape[1], h = shape[2], w = shape[3], padded = (c + 15) / 16 * 16;
    result.push_back(Layout::blocked(x.type(), {n, c, h, w}, {h * w * c, 1, w * c, c}, {}));
    result.push_back(
        Layout::blocked(x.type(), {n, padded, h, w}, {padded * h * w, h * w * 16, w * 16, 16}, {{1, 16}}));
    const int64_t eights = (c + 7) / 8 * 8;
    result.push_back(
        Layout::blocked(x.type(), {n, eights, h, w}, {eights * h * w, h * w * 8, w * 8, 8}, {{1, 8}}));
    return result;
  }
};

TEST_P(BatchNormTest, TrainingNormalisesByTheBatch) { train(); }

TEST_P(BatchNormTest, KeepsBlocksOfChannelsAndChannelsLast) {
  const Reference expected = reference(x, scale, offset, nullptr, nullptr);
  Graph graph;
  auto input = [&](int i, const Array& value) {
    return graph.input(i, value.type(), SourceLocation::current());
  };
  const Tensor y = batch_norm(input(0, x), input(1, scale), input(2, offset), {.epsilon = kEpsilon}).y;
  const Layout vector = Layout::plain(scale.type());
  for (const Layout& layout : layouts()) {
    Kernel kernel;
    expect_near(run_node(y, {x, scale, offset}, {layout, vector, vector}, 2, &kernel), expected.y, 1e-5);
    if (!layout.blocks().empty() || (!layout.is_plain() && shape[1] % 8 == 0)) {
      EXPECT_EQ(kernel.output_layouts[0], layout);
    }
  }
}

TEST(BatchNorm, LosesNoDigitsToALargeMean) {
  const Shape shape{4, 20, 9, 9};
  Array x = random_array(shape, 1);
  for (float& v : x.values<float>()) v = v * 0.01f + 1000.0f;
  const Array scale = random_array({20}, 2, 0.5f, 1.5f), offset = random_array({20}, 3);
  const Reference expected = reference(x, scale, offset, nullptr, nullptr);
  const std::vector<Array> results = evaluate_ops(
      [](std::span<const Tensor> in) {
        const BatchNormResult result = batch_norm(in[0], in[1], in[2], {.epsilon = kEpsilon});
        return std::vector<Tensor>{result.mean, result.variance};
      },
      {x, scale, offset});
  // The mean of a plane is rounded to about 1e-4, the deviation is 6e-3: their squares' ratio is what
  // variances are off by. Mean squares less squared means, in float32, would be off by a thousand
  // times the variance.
  expect_close(results[0], expected.mean, 2e-7, 0);
  expect_close(results[1], expected.variance, 1e-2, 0);
}

TEST_P(BatchNormTest, InferenceNormalisesByWhatIsGiven) { infer(); }

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNormTest,
                         testing::Values(Shape{4, 16, 5, 5}, Shape{3, 20, 4, 3}, Shape{2, 1, 3, 3},
                                         Shape{8, 5}, Shape{33, 24}, Shape{700, 21}, Shape{64, 48},
                                         Shape{1, 3, 1, 1}, Shape{2, 64, 7, 7}, Shape{0, 3, 4, 4},
                                         Shape{0, 3}, Shape{3, 0, 2, 2},
                                         // Shared out by samples.
                                         Shape{9, 32, 24, 24}));

// Neither rows nor images.
class BatchNormOfAnyRank : public BatchNormTest {};

TEST_P(BatchNormOfAnyRank, TrainingNormalisesByTheBatch) { train(); }
TEST_P(BatchNormOfAnyRank, InferenceNormalisesByWhatIsGiven) { infer(); }

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNormOfAnyRank,
                         testing::Values(Shape{4, 5, 7}, Shape{3, 16, 2, 3, 4}, Shape{2, 3, 0},
                                         Shape{2, 3, 1, 2, 1, 2}));

TEST_P(BatchNormOfAnyRank, GradientIsThatOfItsPixelsInARow) {
  int64_t pixels = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) pixels *= shape[axis];
  const Shape image{shape[0], shape[1], pixels, 1};
  const auto gradients = [](std::span<const Tensor> in) {
    const BatchNormGradients made = batch_norm_gradient(in[0], in[1], in[2], in[3], in[4], {});
    return std::vector{made.x, made.scale, made.offset};
  };
  const Array dy = random_array(shape, 6);
  const std::vector<Array> given = evaluate_ops(gradients, {x, scale, mean, variance, dy});
  const std::vector<Array> expected =
      evaluate_ops(gradients, {x.reshaped(image), scale, mean, variance, dy.reshaped(image)});
  EXPECT_EQ(given[0].shape(), shape);
  expect_close(given[0], expected[0].reshaped(shape), 0, 0);
  for (const size_t i : {1, 2}) expect_close(given[i], expected[i], 0, 0);
}

TEST(BatchNorm, GradientMatchesFiniteDifferences) {
  for (const Shape& shape : {Shape{3, 2, 2, 3}, Shape{6, 3}, Shape{5, 8}, Shape{0, 2, 2, 2},
                             Shape{2, 20, 2, 2}, Shape{3, 2, 4}, Shape{2, 2, 2, 1, 2}}) {
    SCOPED_TRACE(to_string(shape));
    const Shape channels{shape[1]};
    const std::vector<Array> inputs = {random_array(shape, 1), random_array(channels, 2, 0.5f, 1.5f),
                                       random_array(channels, 3)};
    check_gradients(
        [](std::span<const Tensor> in) { return batch_norm(in[0], in[1], in[2], {.epsilon = 0.1}).y; },
        inputs, {.absolute = 5e-3});
    check_gradients([](std::span<const Tensor> in) { return batch_norm(in[0], in[1], in[2]).mean; }, inputs);
    check_gradients([](std::span<const Tensor> in) { return batch_norm(in[0], in[1], in[2]).variance; },
                    inputs);
    check_gradients(
        [](std::span<const Tensor> in) {
          return batch_norm_inference(in[0], in[1], in[2], in[3], in[4], {.epsilon = 0.1});
        },
        {inputs[0], inputs[1], inputs[2], random_array(channels, 4), random_array(channels, 5, 0.5f, 1.5f)},
        {.absolute = 5e-3});
  }
}

TEST(BatchNormErrors, SayWhatDoesNotFit) {
  Graph graph;
  auto input = [&](int i, Shape shape) {
    return graph.input(i, {DType::kFloat32, std::move(shape)}, SourceLocation::current());
  };
  const Tensor x = input(0, {2, 3, 4, 4}), three = input(1, {3}), four = input(2, {4}),
               vector = input(3, {3});
  auto refused = [](auto call, const char* piece) {
    EXPECT_THAT(call, testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr(piece)));
  };
  refused([&] { batch_norm(x, four, three); }, "float32[3], one number a channel of x, as input 1");
  refused([&] { batch_norm(x, three, four); }, "as input 2");
  refused([&] { batch_norm(vector, three, three); }, "[batch, channels, ...]");
  for (const double epsilon : {-1.0, 1e39, static_cast<double>(kInfinity)}) {
    refused([&] { batch_norm(x, three, three, {.epsilon = epsilon}); }, "epsilon of at least 0");
    refused([&] { sync_batch_norm(x, three, three, {.epsilon = epsilon}); }, "epsilon of at least 0");
  }
  refused([&] { batch_norm_inference(x, three, three, three, four); }, "as input 4");
  const Tensor flat = input(4, {2, 3, 16});
  refused([&] { batch_norm_gradient(flat, three, three, three, x, {}); },
          "expected dy of x's type float32[2, 3, 16], given float32[2, 3, 4, 4]");
}

}  // namespace
}  // namespace mox::test
