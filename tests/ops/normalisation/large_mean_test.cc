// Normalisation of values whose mean is large beside their deviation, against the formula in double
// precision: the bounds that docs/precision.md states.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/arithmetic/arithmetic.h"
#include "ops/gradients.h"
#include "ops/normalisation/normalisation.h"
#include "ops/reduction/reduction.h"
#include "tests/ops/kernel_testing.h"
#include "tests/support/evaluate.h"
#include "tests/support/larger.h"

namespace mox::test::large_mean {
namespace {

constexpr double kEpsilon = 1e-5, kUnit = 1.0 / (1 << 24);  // what a float32 is rounded by
constexpr double kRatios[] = {0, 1, 100, 1e4};              // of the mean to the deviation

struct Exact {
  std::vector<double> y, mean, variance, dx, dscale;
};

// [batch, channels, pixels]
struct Extents {
  explicit Extents(const Shape& shape)
      : batch(shape[0]), channels(shape[1]), pixels(shape.elements() / (shape[0] * shape[1])) {}
  template <typename Visit>
  void each_of_channel(int64_t channel, Visit visit) const {
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t p = 0; p < pixels; ++p) visit(static_cast<size_t>((n * channels + channel) * pixels + p));
  }
  double values() const { return static_cast<double>(batch * pixels); }
  int64_t batch, channels, pixels;
};

Exact exact(const Array& x, const Array& scale, const Array& offset, const Array& dy) {
  const Extents extents(x.shape());
  const double count = extents.values();
  const auto values = x.values<float>(), weights = dy.values<float>();
  Exact result;
  result.y.resize(values.size());
  result.dx.resize(values.size());
  for (int64_t c = 0; c < extents.channels; ++c) {
    const double factor = static_cast<double>(scale.values<float>()[c]), shift = offset.values<float>()[c];
    double mean = 0, variance = 0, sum = 0, product = 0;
    extents.each_of_channel(c, [&](size_t i) { mean += values[i] / count; });
    extents.each_of_channel(c,
                            [&](size_t i) { variance += (values[i] - mean) * (values[i] - mean) / count; });
    const double inverse = 1 / std::sqrt(variance + kEpsilon);
    extents.each_of_channel(c, [&](size_t i) {
      const double normal = (values[i] - mean) * inverse;
      result.y[i] = normal * factor + shift;
      sum += weights[i];
      product += weights[i] * normal;
    });
    extents.each_of_channel(c, [&](size_t i) {
      const double normal = (values[i] - mean) * inverse;
      result.dx[i] = factor * inverse * (weights[i] - sum / count - normal * product / count);
    });
    result.mean.push_back(mean);
    result.variance.push_back(variance);
    result.dscale.push_back(product);
  }
  return result;
}

double largest_error(const Array& actual, const std::vector<double>& expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    largest = larger(largest, std::abs(static_cast<double>(actual.values<float>()[i]) - expected[i]));
  return largest;
}

double largest_relative_error(const Array& actual, const std::vector<double>& expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    largest = larger(largest, std::abs(actual.values<float>()[i] / expected[i] - 1));
  return largest;
}

class LargeMean : public testing::TestWithParam<std::tuple<Shape, double>> {
 protected:
  Shape shape = std::get<0>(GetParam());
  double ratio = std::get<1>(GetParam()), deviation = 1 / std::sqrt(3.0);  // of what is uniform in [-1, 1)
  Array scale = random_array({shape[1]}, 2, 0.5f, 1.5f), offset = random_array({shape[1]}, 3),
        dy = random_array(shape, 4), x = values();
  Exact expected = exact(x, scale, offset, dy);

  // Each channel has another mean, up to `ratio` deviations from zero.
  Array values() const {
    Array result = random_array(shape, 1);
    const Extents extents(shape);
    for (int64_t c = 0; c < extents.channels; ++c) {
      const double share = c % 3 == 0 ? 1.0 : c % 3 == 1 ? -0.77 : 0.9123, mean = share * ratio * deviation;
      extents.each_of_channel(c, [&](size_t i) {
        float& value = result.values<float>()[i];
        value = static_cast<float>(value + mean);
      });
    }
    return result;
  }

  // y, mean, variance, dx and dscale.
  template <typename Normalise>
  std::vector<Array> results_of(Normalise normalise) const {
    const auto build = [&](std::span<const Tensor> in) -> std::vector<Tensor> {
      const auto normalised = normalise(in[0], in[1], in[2]);
      const std::vector<Tensor> found =
          gradients(reduce_sum(mul(normalised.y, in[3])), std::vector{in[0], in[1]});
      return {normalised.y, normalised.mean, normalised.variance, found[0], found[1]};
    };
    Graph graph;
    const GraphScope scope(graph);
    std::vector<Tensor> inputs;
    const std::vector<Array> arrays = {x, scale, offset, dy};
    for (const Array& array : arrays)
      inputs.push_back(graph.input(static_cast<int>(inputs.size()), array.type(), SourceLocation::current()));
    return run_graph(build(inputs), arrays);
  }

  // The mean is a float32, and so are the results, which are about 1.
  double rounded_mean() const { return kUnit * ratio; }

  void expect_bounds(const std::vector<Array>& results, double y_bound) const {
    const double sums = std::sqrt(Extents(shape).values());
    const std::string errors = fmt::format(
        "y {:.2g} mean {:.2g} variance {:.2g} dx {:.2g} dscale {:.2g}", largest_error(results[0], expected.y),
        largest_error(results[1], expected.mean) / deviation,
        largest_relative_error(results[2], expected.variance), largest_error(results[3], expected.dx),
        largest_error(results[4], expected.dscale) / sums);
    SCOPED_TRACE(errors);
    EXPECT_LE(largest_error(results[0], expected.y), y_bound);
    EXPECT_LE(largest_error(results[1], expected.mean) / deviation, rounded_mean() + 2e-7);
    EXPECT_LE(largest_relative_error(results[2], expected.variance), 2e-6 + 4e-10 * ratio);
    EXPECT_LE(largest_error(results[3], expected.dx), 5e-6 + 2 * rounded_mean());
    EXPECT_LE(largest_error(results[4], expected.dscale) / sums, 5e-6 + 2 * rounded_mean());
  }
};

TEST_P(LargeMean, LosesWhatAFloatOfTheMeanIsRoundedBy) {
  expect_bounds(results_of([](const Tensor& a, const Tensor& b, const Tensor& c) {
                  return batch_norm(a, b, c, {.epsilon = kEpsilon});
                }),
                2e-6 + 2 * rounded_mean());
}

// Its distances are from what the mean was rounded to, and what is left of it goes into the offset.
TEST_P(LargeMean, LosesNothingOfAllReplicas) {
  expect_bounds(results_of([](const Tensor& a, const Tensor& b, const Tensor& c) {
                  return sync_batch_norm(a, b, c, {.epsilon = kEpsilon});
                }),
                3e-6);
}

TEST_P(LargeMean, LosesNoMoreInOtherLayouts) {
  if (shape.rank() != 4) return;  // a matrix has one layout
  const int64_t n = shape[0], c = shape[1], h = shape[2], w = shape[3];
  const auto blocked = [&](int64_t block) {
    const int64_t padded = (c + block - 1) / block * block;
    return Layout::blocked(x.type(), {n, padded, h, w}, {padded * h * w, h * w * block, w * block, block},
                           {{1, block}});
  };
  Graph graph;
  const auto input = [&](int i, const Array& value) {
    return graph.input(i, value.type(), SourceLocation::current());
  };
  const Tensor y = batch_norm(input(0, x), input(1, scale), input(2, offset), {.epsilon = kEpsilon}).y;
  const Layout vector = Layout::plain(scale.type());
  for (const Layout& layout :
       {blocked(8), blocked(16), Layout::blocked(x.type(), {n, c, h, w}, {h * w * c, 1, w * c, c}, {})})
    EXPECT_LE(largest_error(run_node(y, {x, scale, offset}, {layout, vector, vector}, 2), expected.y),
              2e-6 + 2 * rounded_mean())
        << layout.to_string();
}

INSTANTIATE_TEST_SUITE_P(Shapes, LargeMean,
                         testing::Combine(testing::Values(Shape{1024, 16}, Shape{700, 21}, Shape{4096, 64},
                                                          Shape{8, 32, 56, 56}, Shape{4, 20, 28, 28},
                                                          Shape{2, 16, 113, 113}, Shape{32, 24, 7, 7},
                                                          Shape{1, 16, 512, 512}, Shape{1, 16, 64, 128, 128}),
                                          testing::ValuesIn(kRatios)));

}  // namespace
}  // namespace mox::test::large_mean
