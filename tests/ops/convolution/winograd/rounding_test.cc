// The bound that is stated for Winograd's convolutions, and the choice by it.
#include "ops/convolution/winograd/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "ops/convolution/convolution.h"
#include "ops/fusion/default_rules.h"
#include "ops/processor/processor.h"
#include "runtime/exec/plan_instance.h"
#include "tests/support/evaluate.h"
#include "tests/support/larger.h"

namespace mox {
namespace {

constexpr ConvolutionResult kResults[] = {ConvolutionResult::kOutput, ConvolutionResult::kInputGradient,
                                          ConvolutionResult::kFilterGradient};

struct RoundingCase {
  int64_t batch, in, out, height, width, window = 3, stride = 1;
  float least = -1;  // of the images; what is below it becomes it

  int64_t before() const { return window / 2; }
  ConvolutionOptions options() const {
    return {.strides = {stride, stride}, .padding = Padding::of(before(), before(), before(), before())};
  }
  ConvolutionGeometry geometry(DType dtype = DType::kFloat32) const {
    return resolve_convolution(convolution_attributes(options()), {dtype, {batch, in, height, width}},
                               {dtype, {out, in, window, window}});
  }
  double bound(ConvolutionResult result) const { return winograd_error(geometry(), result); }
};

void PrintTo(const RoundingCase& c, std::ostream* stream) {
  *stream << to_string(c.geometry().x.shape) << " to " << c.out << " channels by a window of " << c.window
          << ", stride " << c.stride << ", from " << c.least;
}

// One of the three, of inputs x, w and dy.
auto plan_of(const RoundingCase& c, ConvolutionResult result, double largest_error, const Team& team) {
  Graph graph;
  const GraphScope scope(graph);
  const SourceLocation here = SourceLocation::current();
  const ConvolutionGeometry geometry = c.geometry();
  const Tensor x = graph.input(0, geometry.x, here), w = graph.input(1, geometry.w, here),
               dy = graph.input(2, geometry.y, here);
  const Tensor fetch = result == ConvolutionResult::kOutput ? conv2d(x, w, c.options())
                       : result == ConvolutionResult::kInputGradient
                           ? conv2d_input_gradient(x.shape(), w, dy, c.options())
                           : conv2d_filter_gradient(x, w.shape(), dy, c.options());
  CompileOptions compile = test::compile_options();
  compile.rules = default_rules({.convolution_error = largest_error});
  return Plan::compile(graph, {.fetches = {fetch}, .gradients = {}, .after_step_values = {}}, compile, team);
}
bool takes_winograd(const Plan& plan) { return plan.describe().find(" winograd") != std::string::npos; }

// Of each result.
struct Measured {
  double error[3];
  bool by_winograd[3];
};

// The three results and their errors beside sums in float64, of as many of them as take little time.
class Measurement {
 public:
  Measurement(const RoundingCase& of, double largest_error)
      : case_(of),
        geometry_(of.geometry()),
        x_(test::random_array(geometry_.x.shape, 1)),
        w_(test::random_array(geometry_.w.shape, 2)),
        dy_(test::random_array(geometry_.y.shape, 3)) {
    for (float& value : x_.values<float>()) value = std::max(value, of.least);
    for (size_t i = 0; i < 3; ++i) results_[i] = run(kResults[i], largest_error);
  }

  Measured measured() const {
    return {{largest_difference(0, geometry_.y.shape), largest_difference(1, geometry_.x.shape), of_filter()},
            {by_winograd_[0], by_winograd_[1], by_winograd_[2]}};
  }

 private:
  Array run(ConvolutionResult result, double largest_error) {
    const Team team(2);
    team.enter();
    const auto plan = plan_of(case_, result, largest_error, team);
    by_winograd_[static_cast<size_t>(result)] = takes_winograd(*plan);
    PlanInstance instance(plan, team, [](std::string_view) { return Array(); });
    instance.run({.components = std::vector<Array>{x_, w_, dy_}});
    return instance.fetched(0).clone();
  }

  static double largest(const Array& values) {
    double found = 0;
    for (const float value : values.values<float>()) found = std::max<double>(found, std::fabs(value));
    return found;
  }

  // take(pixel of y, pixel of x) where this tap lies on the image.
  template <typename Take>
  void for_each_pixel(int64_t tap_y, int64_t tap_x, const Take& take) const {
    const Shape &x = geometry_.x.shape, &y = geometry_.y.shape;
    for (int64_t p = 0; p < y[2]; ++p) {
      const int64_t row = p * case_.stride + tap_y - case_.before();
      if (row < 0 || row >= x[2]) continue;
      for (int64_t q = 0; q < y[3]; ++q) {
        const int64_t column = q * case_.stride + tap_x - case_.before();
        if (column >= 0 && column < x[3]) take(p * y[3] + q, row * x[3] + column);
      }
    }
  }
  const float* plane(const Array& image, int64_t i, int64_t channel) const {
    const Shape& shape = image.shape();
    return image.values<float>().data() + (i * shape[1] + channel) * shape[2] * shape[3];
  }
  float tap(int64_t out, int64_t in, int64_t y, int64_t x) const {
    return w_.values<float>()[((out * case_.in + in) * case_.window + y) * case_.window + x];
  }

  // Of planes of y (0) or dx (1).
  double largest_difference(size_t which, const Shape& shape) const {
    const bool is_gradient = which == 1;
    const int64_t pixels = shape[2] * shape[3], planes = std::max<int64_t>(2, 10000 / pixels);
    double found = 0;
    for (int64_t k = 0; k < planes; ++k) {
      const int64_t i = k * 7 % shape[0], channel = k * 13 % shape[1];
      std::vector<double> sum(static_cast<size_t>(pixels));
      for (int64_t c = 0; c < (is_gradient ? case_.out : case_.in); ++c) {
        const float* read = plane(is_gradient ? dy_ : x_, i, c);
        for (int64_t y = 0; y < case_.window; ++y)
          for (int64_t x = 0; x < case_.window; ++x) {
            const double factor = is_gradient ? tap(c, channel, y, x) : tap(channel, c, y, x);
            for_each_pixel(y, x, [&](int64_t of_y, int64_t of_x) {
              if (is_gradient)
                sum[of_x] += factor * read[of_y];
              else
                sum[of_y] += factor * read[of_x];
            });
          }
      }
      const float* given = plane(results_[which], i, channel);
      for (int64_t p = 0; p < pixels; ++p) found = test::larger(found, std::fabs(sum[p] - given[p]));
    }
    return found / largest(results_[which]);
  }

  double of_filter() const {
    const Shape &w = geometry_.w.shape, &y = geometry_.y.shape;
    const int64_t pairs =
        std::min(w[0] * w[1], std::max<int64_t>(16, 20'000'000 / (y.elements() / y[1])) / 9);
    double found = 0;
    for (int64_t k = 0; k < pairs; ++k) {
      const int64_t pair = k * 97 % (w[0] * w[1]), out = pair / w[1], in = pair % w[1];
      for (int64_t a = 0; a < w[2]; ++a)
        for (int64_t b = 0; b < w[3]; ++b) {
          double sum = 0;
          for (int64_t i = 0; i < case_.batch; ++i) {
            const float *dy = plane(dy_, i, out), *x = plane(x_, i, in);
            for_each_pixel(
                a, b, [&](int64_t of_y, int64_t of_x) { sum += static_cast<double>(dy[of_y]) * x[of_x]; });
          }
          const float given = results_[2].values<float>()[((out * w[1] + in) * w[2] + a) * w[3] + b];
          found = test::larger(found, std::fabs(sum - given));
        }
    }
    return found / largest(results_[2]);
  }

  RoundingCase case_;
  ConvolutionGeometry geometry_;
  Array x_, w_, dy_;
  Array results_[3];
  bool by_winograd_[3] = {};
};

class WinogradRounding : public ::testing::TestWithParam<RoundingCase> {};

// A bound that is never nearly reached says nothing.
TEST_P(WinogradRounding, KeepsToItsBoundAndComesNearIt) {
  const Measured measured = Measurement(GetParam(), kStatedConvolutionError).measured();
  for (size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_TRUE(measured.by_winograd[i]);
    const double bound = GetParam().bound(kResults[i]);
    EXPECT_LT(measured.error[i], bound);
    EXPECT_GT(measured.error[i], bound / 8);
  }
}

// Of a direct sum the error is about that of its terms, added up in a row.
TEST_P(WinogradRounding, StaysBelowWhatIsAskedForOrIsNotTaken) {
  constexpr double kLargest = 1e-5;
  const ConvolutionGeometry geometry = GetParam().geometry();
  const Shape &w = geometry.w.shape, &y = geometry.y.shape;
  const int64_t terms[] = {w.elements() / w[0], w.elements() / w[1], y.elements() / y[1]};
  const Measured measured = Measurement(GetParam(), kLargest).measured();
  for (size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(measured.by_winograd[i], GetParam().bound(kResults[i]) <= kLargest);
    const double of_sum = 0x1p-24 * std::sqrt(16 + static_cast<double>(terms[i]));
    EXPECT_LT(measured.error[i], measured.by_winograd[i] ? kLargest : of_sum);
  }
}

TEST_P(WinogradRounding, DecidesAtItsBound) {
  const Team team(1);
  team.enter();
  for (const ConvolutionResult result : kResults) {
    const double bound = GetParam().bound(result);
    EXPECT_TRUE(takes_winograd(*plan_of(GetParam(), result, bound, team)));
    EXPECT_FALSE(takes_winograd(*plan_of(GetParam(), result, bound * 0.999, team)));
    EXPECT_FALSE(takes_winograd(*plan_of(GetParam(), result, 0, team)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradRounding,
    ::testing::Values(RoundingCase{8, 16, 16, 32, 32}, RoundingCase{8, 64, 64, 32, 32},
                      RoundingCase{8, 128, 128, 28, 28}, RoundingCase{8, 64, 64, 32, 32, 3, 1, 0},
                      // Sums of all channels in a row, and sums that are cut.
                      RoundingCase{4, 1024, 16, 20, 20}, RoundingCase{4, 16, 1024, 20, 20},
                      RoundingCase{4, 512, 512, 16, 16},
                      // Many tiles.
                      RoundingCase{32, 16, 16, 112, 112}, RoundingCase{16, 128, 80, 56, 56},
                      // Windows of 5: tiles of 8, and of 6.
                      RoundingCase{8, 16, 16, 32, 32, 5}, RoundingCase{8, 64, 64, 32, 32, 5},
                      RoundingCase{30, 16, 32, 14, 14, 5}, RoundingCase{8, 128, 128, 22, 22, 5},
                      RoundingCase{4, 16, 32, 96, 96, 5}, RoundingCase{8, 16, 32, 32, 32, 3, 2},
                      RoundingCase{8, 128, 64, 28, 28, 3, 2}, RoundingCase{4, 512, 32, 28, 28, 3, 2}));

using Numbers = std::vector<double>;

// The product of (x - root) over the roots, but for the one at `without`; and its value.
Numbers polynomial(const Numbers& roots, size_t without) {
  Numbers coefficients = {1};
  for (size_t r = 0; r < roots.size(); ++r) {
    if (r == without) continue;
    coefficients.push_back(0);
    for (size_t i = coefficients.size(); --i > 0;)
      coefficients[i] = coefficients[i - 1] - roots[r] * coefficients[i];
    coefficients[0] *= -roots[r];
  }
  return coefficients;
}
double sum_of_squares(const Numbers& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

// By the definition, for `taps` taps and `outputs` outputs in a line, and the points of infinity and these.
double enlargement(const Numbers& points, int taps, int outputs) {
  Numbers squares(static_cast<size_t>(outputs), 0.0);
  for (size_t i = 0; i <= points.size(); ++i) {
    const bool is_infinity = i == points.size();
    double scale = 1, g = is_infinity ? 1 : 0;
    for (size_t j = 0; j < points.size() && !is_infinity; ++j)
      if (j != i) scale *= points[i] - points[j];
    for (int n = 0; n < taps && !is_infinity; ++n) g += std::pow(points[i], 2 * n) / (scale * scale);
    const double b = sum_of_squares(polynomial(points, i));
    for (int n = 0; n < outputs; ++n) {
      const double a = is_infinity ? (n == outputs - 1 ? 1 : 0) : std::pow(points[i], n);
      squares[static_cast<size_t>(n)] += a * a * b * g / taps;
    }
  }
  // In two dimensions: the square of the root.
  return *std::max_element(squares.begin(), squares.end());
}

constexpr double stated(double enlargement, double addends) {
  return enlargement * 0x1p-24 * std::sqrt((16 + addends) / 2);
}

TEST(WinogradError, FollowsFromThePointsAndTheAddends) {
  const Numbers five = {0, 1, -1, 2}, six = {0, 1, -1, 2, -2}, eight = {0, 1, -1, 2, -2, 0.5, -0.5};
  const auto expect = [](const RoundingCase& c, double y, double dx, double dw) {
    SCOPED_TRACE(testing::PrintToString(c));
    EXPECT_NEAR(c.bound(ConvolutionResult::kOutput) / y, 1, 1e-3);
    EXPECT_NEAR(c.bound(ConvolutionResult::kInputGradient) / dx, 1, 1e-3);
    EXPECT_NEAR(c.bound(ConvolutionResult::kFilterGradient) / dw, 1, 1e-3);
  };
  const double of_six = enlargement(six, 3, 4), of_filter = enlargement(six, 4, 3);
  // 8 images of 8 x 8 tiles, and of 7 x 7.
  expect({8, 16, 64, 32, 32}, stated(of_six, 16), stated(of_six, 64), stated(of_filter, 36 + 8 + 512 / 96.0));
  expect({8, 512, 64, 28, 28}, stated(of_six, 192 + 8), stated(of_six, 64 + 1),
         stated(of_filter, 192 + 392 / 64.0));
  expect({8, 32, 64, 32, 32, 5}, stated(enlargement(eight, 5, 4), 32), stated(enlargement(eight, 5, 4), 64),
         stated(enlargement(eight, 4, 5), 36 + 8 + 512 / 96.0));
  // With strides of 2 a line has two taps for five points, and one that nothing is done to.
  const double of_two = enlargement(five, 2, 4), in_line = (2 * of_two + 1) / 3;
  expect({8, 32, 64, 32, 32, 3, 2}, stated(in_line, 32), stated(of_two, 64),
         stated(enlargement(five, 4, 2), 36 + 8 + 128 / 96.0));
}

TEST(WinogradError, OfEveryShapeIsBelowTheLargestThatIsStated) {
  // A batch of 2^30 pixels.
  for (const int64_t window : {3, 5})
    for (const ConvolutionResult result : kResults)
      EXPECT_LT((RoundingCase{1 << 10, 1 << 14, 64, 1 << 10, 1 << 10, window}.bound(result)),
                kStatedConvolutionError);
  const RoundingCase any{8, 16, 16, 32, 32};
  for (const ConvolutionResult result : kResults)
    EXPECT_EQ(winograd_error(any.geometry(DType::kBFloat16), result), kStatedConvolutionError);
}

}  // namespace
}  // namespace mox
