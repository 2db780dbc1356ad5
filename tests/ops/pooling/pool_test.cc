#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/gradients.h"
#include "ops/pooling/pooling.h"
#include "ops/reduction/reduction.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/exec/plan_instance.h"
#include "runtime/graph/autodiff.h"
#include "tests/ops/kernel_testing.h"
#include "tests/ops/reference_convolution.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

// Distinct values, so that every window has one largest element.
Array distinct_values(const Shape& shape, uint64_t key) {
  Array result(DType::kFloat32, shape);
  const auto values = result.values<float>();
  if (values.empty()) return result;
  const Permutation order(values.size(), 3, key);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(order(i)) / static_cast<float>(values.size()) - 0.5f;
  return result;
}

struct PoolCase {
  const char* name;
  Shape x;
  Pool2dOptions options;
};

void PrintTo(const PoolCase& c, std::ostream* stream) { *stream << to_string(c.x); }

const PoolCase kPools[] = {
    {"halves", {2, 32, 8, 8}, {}},
    {"odd_image", {2, 16, 7, 9}, {}},
    {"one_channel", {3, 1, 6, 6}, {}},
    {"padded_channels", {2, 20, 6, 6}, {}},
    {"same", {2, 16, 7, 7}, {.window = {3, 3}, .strides = {2, 2}, .padding = Padding::kSame}},
    {"same_even", {2, 5, 8, 8}, {.window = {3, 3}, .strides = {2, 2}, .padding = Padding::kSame}},
    {"same_stride_one", {1, 8, 5, 6}, {.window = {2, 3}, .strides = {1, 1}, .padding = Padding::kSame}},
    {"explicit", {1, 3, 6, 6}, {.window = {3, 2}, .strides = {2, 3}, .padding = Padding::of(1, 2, 0, 1)}},
    {"count_padding",
     {1, 16, 6, 6},
     {.window = {3, 3}, .padding = Padding::of(1), .count_include_pad = true}},
    {"skips_pixels", {1, 4, 9, 9}, {.window = {2, 1}, .strides = {3, 4}}},
    {"one_pixel", {2, 3, 1, 1}, {.window = {1, 1}, .strides = {1, 1}}},
    {"more_than_one_pixel", {2, 3, 1, 1}, {.window = {2, 2}, .strides = {1, 1}, .padding = Padding::of(1)}},
    {"more_than_one_of_blocks",
     {2, 32, 1, 1},
     {.window = {2, 2}, .strides = {1, 1}, .padding = Padding::of(1)}},
    {"single_pixels", {2, 32, 8, 8}, {.window = {1, 1}, .strides = {2, 2}}},
    {"single_pixels_odd", {3, 5, 7, 10}, {.window = {1, 1}, .strides = {3, 2}}},
    {"large_window", {1, 16, 20, 20}, {.window = {20, 20}, .strides = {1, 1}}},
    {"empty_batch", {0, 3, 4, 4}, {}},
    {"no_channels", {2, 0, 4, 4}, {}},
};

// visit(n, y index, list of x indices) for every window.
void for_each_window(const PoolCase& c,
                     const std::function<void(int64_t, const std::vector<int64_t>&)>& visit, Shape* y) {
  const auto& o = c.options;
  const ReferenceAxis rows = reference_axis(c.x[2], o.window[0], o.strides[0], 1, o.padding, 0);
  const ReferenceAxis columns = reference_axis(c.x[3], o.window[1], o.strides[1], 1, o.padding, 1);
  *y = Shape{c.x[0], c.x[1], rows.output, columns.output};
  int64_t index = 0;
  for (int64_t image = 0; image < c.x[0] * c.x[1]; ++image)
    for (int64_t i = 0; i < rows.output; ++i)
      for (int64_t j = 0; j < columns.output; ++j) {
        std::vector<int64_t> pixels;
        for (int64_t p = 0; p < o.window[0]; ++p)
          for (int64_t q = 0; q < o.window[1]; ++q) {
            const int64_t row = i * o.strides[0] + p - rows.before,
                          column = j * o.strides[1] + q - columns.before;
            if (row >= 0 && row < c.x[2] && column >= 0 && column < c.x[3])
              pixels.push_back((image * c.x[2] + row) * c.x[3] + column);
          }
        visit(index++, pixels);
      }
}

class PoolTest : public testing::TestWithParam<PoolCase> {
 protected:
  PoolTest() {
    for_each_window(
        GetParam(), [](int64_t, const std::vector<int64_t>&) {}, &y_shape);
    dy = distinct_values(y_shape, 5);
  }
  // The layouts an image may come in.
  std::vector<Layout> layouts(const TensorType& type) {
    std::vector<Layout> result = {Layout::plain(type)};
    if (type.shape.elements() == 0) return result;
    const int64_t c = type.shape[1], h = type.shape[2], w = type.shape[3];
    result.push_back(Layout::blocked(type, {type.shape[0], c, h, w}, {h * w * c, 1, w * c, c}, {}));
    const int64_t padded = (c + 15) / 16 * 16;
    result.push_back(Layout::blocked(type, {type.shape[0], padded, h, w},
                                     {padded * h * w, h * w * 16, w * 16, 16}, {{1, 16}}));
    return result;
  }
  int64_t divisor(const std::vector<int64_t>& pixels) {
    const auto& o = GetParam().options;
    return o.count_include_pad ? o.window[0] * o.window[1] : static_cast<int64_t>(pixels.size());
  }
  Array x = distinct_values(GetParam().x, 4), dy;
  Shape y_shape;
  Graph graph;
};

TEST_P(PoolTest, MaxIsTheLargestOfEachWindow) {
  Array expected(DType::kFloat32, y_shape);
  for_each_window(
      GetParam(),
      [&](int64_t i, const std::vector<int64_t>& pixels) {
        float largest = -1e9f;
        for (int64_t p : pixels) largest = std::max(largest, x.values<float>()[p]);
        expected.values<float>()[i] = largest;
      },
      &y_shape);
  const Tensor y = max_pool(graph.input(0, x.type(), SourceLocation::current()), GetParam().options);
  for (const Layout& layout : layouts(x.type())) {
    Kernel kernel;
    expect_near(run_node(y, {x}, {layout}, 2, &kernel), expected, 0);
    EXPECT_EQ(kernel.input_layouts[0], layout) << "pooling keeps the layout of its input";
  }
}

TEST_P(PoolTest, MaxGradientGoesToTheWinner) {
  Array expected(DType::kFloat32, x.shape());
  for_each_window(
      GetParam(),
      [&](int64_t i, const std::vector<int64_t>& pixels) {
        int64_t winner = pixels[0];
        for (int64_t p : pixels)
          if (x.values<float>()[p] > x.values<float>()[winner]) winner = p;
        expected.values<float>()[winner] += dy.values<float>()[i];
      },
      &y_shape);
  const Tensor image = graph.input(0, x.type(), SourceLocation::current());
  const Tensor y = max_pool(image, GetParam().options);
  const Tensor seed = graph.input(1, dy.type(), SourceLocation::current());
  const Tensor dx =
      y.node()->op->gradient({.node = *y.node(), .output_gradients = std::vector<Tensor>{seed, {}}})[0];
  const Team team(1);
  const auto plan = Plan::compile(graph, {.fetches = {y, dx}, .gradients = {}, .after_step_values = {}},
                                  {.rules = {}, .convert = convert_layout}, team);
  PlanInstance instance(plan, team, [](std::string_view) { return Array(); });
  const std::vector<Array> inputs = {x, dy};
  instance.run({inputs, 0, 0});
  expect_near(instance.fetched(1), expected, 1e-6);
}

TEST_P(PoolTest, AverageAndItsGradientAreAdjoint) {
  Array expected(DType::kFloat32, y_shape), expected_dx(DType::kFloat32, x.shape());
  for_each_window(
      GetParam(),
      [&](int64_t i, const std::vector<int64_t>& pixels) {
        double total = 0;
        const auto scale = static_cast<double>(divisor(pixels));
        for (int64_t p : pixels) {
          total += static_cast<double>(x.values<float>()[p]);
          expected_dx.values<float>()[p] +=
              static_cast<float>(static_cast<double>(dy.values<float>()[i]) / scale);
        }
        expected.values<float>()[i] = static_cast<float>(total / scale);
      },
      &y_shape);
  const Tensor y = avg_pool(graph.input(0, x.type(), SourceLocation::current()), GetParam().options);
  for (const Layout& layout : layouts(x.type())) expect_near(run_node(y, {x}, {layout}, 2), expected, 1e-6);
  const Tensor dx =
      avg_pool_gradient(x.shape(), graph.input(1, dy.type(), SourceLocation::current()), GetParam().options);
  for (const Layout& layout : layouts(dy.type()))
    expect_near(run_node(dx, {dy}, {layout}), expected_dx, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, PoolTest, testing::ValuesIn(kPools),
                         [](const auto& info) { return info.param.name; });

TEST(GlobalPool, TakesTheWholeImage) {
  Graph graph;
  const Array x = Array::from<float>({1, 2, 2, 2}, {1, 2, 3, 6, -1, -2, -3, -6});
  const Tensor image = graph.input(0, x.type(), SourceLocation::current());
  expect_near(run_node(global_avg_pool(image), {x}), Array::from<float>({1, 2, 1, 1}, {3, -3}), 1e-6);
  expect_near(run_node(global_max_pool(image), {x}), Array::from<float>({1, 2, 1, 1}, {6, -1}), 0);
}

// Of images whose channels fill blocks of 8 and of 16, and do not.
TEST(GlobalPool, SharesItsGradientOut) {
  for (const int64_t channels : {3, 8, 32, 40}) {
    const Array dy = random_array({2, channels, 1, 1}, 1);
    Array expected(DType::kFloat32, {2, channels, 3, 4});
    for (int64_t i = 0; i < expected.elements(); ++i)
      expected.values<float>()[i] = dy.values<float>()[i / 12] / 12;
    Graph graph;
    const Tensor dx = avg_pool_gradient(
        expected.shape(), graph.input(0, dy.type(), SourceLocation::current()), {.window = {3, 4}});
    for (const int threads : {1, 3}) expect_near(run_node(dx, {dy}, {}, threads), expected, 1e-6);
  }
}

TEST(Pool, GradientMatchesFiniteDifferences) {
  const Pool2dOptions overlapping{.window = {3, 2}, .strides = {2, 1}, .padding = Padding::kSame};
  const Pool2dOptions counted{.window = {3, 3}, .padding = Padding::of(1), .count_include_pad = true};
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 1, 3, 3}, Shape{0, 2, 4, 4}}) {
    const Array x = distinct_values(shape, 1);
    for (const Pool2dOptions& options : {Pool2dOptions(), overlapping, counted}) {
      // Values are at least 1 / elements apart: a smaller step keeps every winner.
      check_gradients([&](std::span<const Tensor> in) { return max_pool(in[0], options); }, {x},
                      {.step = 3e-3});
      check_gradients([&](std::span<const Tensor> in) { return avg_pool(in[0], options); }, {x});
    }
  }
  check_gradients(
      [](std::span<const Tensor> in) {
        return avg_pool_gradient({1, 2, 5, 5}, in[0], {});
      },
      {random_array({1, 2, 2, 2}, 4)});
  check_gradients([](std::span<const Tensor> in) { return global_avg_pool(in[0]); },
                  {random_array({2, 3, 2, 3}, 5)});
}

// oneDNN has nothing but its reference for blocks of 16 without AVX-512, which takes many times as long.
TEST(Pool, AverageGradientInBlocksIsNoReference) {
  const TensorType pooled{DType::kFloat32, {2, 32, 4, 4}};
  for (const int64_t block : {8, 16}) {
    const Layout blocked =
        Layout::blocked(pooled, {2, 32, 4, 4}, {512, 16 * block, 4 * block, block}, {{1, block}});
    Graph graph;
    const Tensor dx = avg_pool_gradient({2, 32, 8, 8}, graph.input(0, pooled, SourceLocation::current()), {});
    const Team team(1);
    const Kernel kernel = dx.node()->op->compile({*dx.node(), {blocked}, {false}, team});
    EXPECT_THAT(kernel.implementation, testing::Not(testing::StartsWith("ref"))) << block;
  }
}

TEST(Pool, MaxGradientKeepsTheLayoutOfTheImage) {
  const TensorType pooled{DType::kFloat32, {2, 32, 3, 3}}, winners{DType::kUInt8, pooled.shape};
  const Layout plain = Layout::plain(pooled);
  const Layout blocked = Layout::blocked(winners, {2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  Graph graph;
  const Tensor dx = max_pool_gradient({2, 32, 7, 7}, graph.input(0, pooled, SourceLocation::current()),
                                      graph.input(1, winners, SourceLocation::current()), {});
  const Team team(1);
  const Kernel kernel = dx.node()->op->compile({*dx.node(), {plain, blocked}, {false, false}, team});
  EXPECT_EQ(kernel.output_layouts[0].to_string(), "aBcd16b");
  EXPECT_EQ(kernel.input_layouts[0].to_string(), "aBcd16b");
}

TEST(Pool, GradientOfSinglePixelsInBlocksOfChannels) {
  const TensorType image{DType::kFloat32, {2, 32, 5, 6}}, pooled{DType::kFloat32, {2, 32, 3, 3}};
  const auto in_blocks = [](const TensorType& type) {
    const Shape& s = type.shape;
    return Layout::blocked(type, {s[0], s[1], s[2], s[3]},
                           {s[1] * s[2] * s[3], s[2] * s[3] * 16, s[3] * 16, 16}, {{1, 16}});
  };
  const Array dy = distinct_values(pooled.shape, 7), winner(DType::kUInt8, pooled.shape);
  Array expected(DType::kFloat32, image.shape);
  for (int64_t plane = 0; plane < image.shape[0] * image.shape[1]; ++plane)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j)
        expected.values<float>()[(plane * 5 + 2 * i) * 6 + 2 * j] =
            dy.values<float>()[(plane * 3 + i) * 3 + j];
  Graph graph;
  const Tensor dx = max_pool_gradient(image.shape, graph.input(0, pooled, SourceLocation::current()),
                                      graph.input(1, winner.type(), SourceLocation::current()),
                                      {.window = {1, 1}, .strides = {2, 2}});
  expect_near(run_node(dx, {dy, winner}, {in_blocks(pooled), in_blocks(winner.type())}, 2), expected, 0);
}

TEST(Pool, MaxKeepsNaN) {
  for (const int64_t channels : {1, 16, 20}) {
    Array x(DType::kFloat32, {1, channels, 4, 4});
    const auto values = x.values<float>();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const size_t i : {0, 1, 4, 5}) values[i] = nan;  // the whole first window
    values[2] = nan;                                      // the first of the second
    values[13] = nan;                                     // the last of the third
    const Array y = evaluate_op([](std::span<const Tensor> in) { return max_pool(relu(in[0])); }, {x});
    for (const size_t i : {0, 1, 2})
      EXPECT_TRUE(std::isnan(y.values<float>()[i])) << channels << ": window " << i;
    EXPECT_EQ(y.values<float>()[3], 0);
  }
}

TEST(Pool, MaxHasASecondDerivative) {
  const Array x = distinct_values({1, 2, 4, 4}, 1);
  check_gradients(
      [](std::span<const Tensor> in) {
        const Tensor y = max_pool(in[0]);
        return gradients(reduce_sum(mul(square(y), y)), std::vector<Tensor>{in[0]})[0];
      },
      {x}, {.step = 3e-3});
}

TEST(Pool, MaxCommutesWithRelu) {
  const Array x = distinct_values({2, 3, 6, 6}, 1);
  Graph graph;
  const Tensor image = graph.input(0, x.type(), SourceLocation::current());
  EXPECT_EQ(max_pool(relu(image)).node()->op->name, "relu");
  Array expected = evaluate_op([](std::span<const Tensor> in) { return max_pool(in[0]); }, {x});
  for (float& value : expected.values<float>()) value = std::max(value, 0.0f);
  expect_near(evaluate_op([](std::span<const Tensor> in) { return max_pool(relu(in[0])); }, {x}), expected,
              0);
  check_gradients([](std::span<const Tensor> in) { return max_pool(relu(in[0])); }, {x}, {.step = 1e-3});
}

// The image after relu has other readers there, with which it is fused.
TEST(Pool, OfSinglePixelsStaysBehindRelu) {
  Graph graph;
  const Tensor image = graph.input(0, {DType::kFloat32, {2, 3, 6, 6}}, SourceLocation::current());
  const Tensor y = max_pool(relu(image), {.window = {1, 1}, .strides = {2, 2}});
  EXPECT_EQ(y.node()->op->name, "max_pool");
  EXPECT_EQ(y.node()->inputs[0].node()->op->name, "relu");
}

template <typename Call>
void expect_refused(Call call, const char* piece) {
  try {
    call();
    FAIL() << "accepted, expected: " << piece;
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(piece));
  }
}

TEST(PoolErrors, SayWhatDoesNotFit) {
  Graph graph;
  const Tensor x = graph.input(0, {DType::kFloat32, {1, 1, 4, 4}}, SourceLocation::current());
  const Tensor matrix = graph.input(1, {DType::kFloat32, {4, 4}}, SourceLocation::current());
  expect_refused([&] { max_pool(matrix); }, "[batch, channels, height, width]");
  expect_refused([&] { global_avg_pool(matrix); }, "[batch, channels, height, width]");
  expect_refused([&] { max_pool(x, {.window = {5, 2}}); }, "spans 5 of 4 pixels");
  expect_refused([&] { avg_pool(x, {.window = {0, 2}}); }, "window of at least 1 x 1");
  expect_refused([&] { avg_pool(x, {.padding = Padding::of(2)}); }, "padding smaller than the window");
  expect_refused([&] { max_pool(x, {.strides = {2, 0}}); }, "strides of at least 1");
  expect_refused([&] { max_pool(x, {.strides = {2, int64_t{1} << 31}}); }, "and at most 2^30");
}

}  // namespace
}  // namespace mox::test
