#include "ops/convolution/conv2d.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <ostream>

#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/graph/graph.h"
#include "tests/ops/kernel_testing.h"
#include "tests/ops/reference_convolution.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

struct ConvolutionCase {
  const char* name;
  Shape x, w;
  ConvolutionOptions options;
};

void PrintTo(const ConvolutionCase& c, std::ostream* stream) {
  *stream << to_string(c.x) << " by " << to_string(c.w);
}

const ConvolutionCase kConvolutions[] = {
    {"lenet_first", {2, 1, 28, 28}, {32, 1, 5, 5}, {}},
    {"lenet_second", {2, 32, 14, 14}, {64, 32, 5, 5}, {}},
    {"one_pixel", {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
    {"one_pixel_large_window", {2, 3, 1, 1}, {4, 3, 3, 3}, {}},
    {"padded_channels", {2, 5, 6, 7}, {20, 5, 3, 3}, {.padding = Padding::kValid}},
    {"both_padded", {2, 20, 6, 7}, {37, 20, 3, 3}, {}},
    {"stride_same_even", {1, 16, 8, 8}, {16, 16, 3, 3}, {.strides = {2, 2}}},
    {"stride_same_odd", {1, 16, 7, 9}, {16, 16, 3, 3}, {.strides = {2, 2}}},
    {"stride_beyond_window", {1, 3, 9, 10}, {2, 3, 1, 2}, {.strides = {4, 3}}},
    {"imagenet_first", {1, 3, 20, 20}, {64, 3, 7, 7}, {.strides = {2, 2}}},
    {"even_window", {1, 2, 6, 6}, {3, 2, 4, 2}, {}},
    {"dilated", {2, 4, 11, 12}, {6, 4, 3, 3}, {.dilations = {2, 3}}},
    {"dilated_valid", {1, 16, 9, 9}, {16, 16, 3, 3}, {.dilations = {2, 2}, .padding = Padding::kValid}},
    {"explicit", {1, 3, 6, 6}, {8, 3, 3, 3}, {.strides = {2, 1}, .padding = Padding::of(0, 1, 2, 3)}},
    {"explicit_wide", {1, 2, 3, 3}, {2, 2, 2, 2}, {.padding = Padding::of(4)}},
    {"groups", {2, 6, 5, 5}, {9, 2, 3, 3}, {.groups = 3}},
    {"groups_of_blocks", {1, 32, 6, 6}, {64, 16, 3, 3}, {.groups = 2}},
    {"groups_padded", {1, 20, 6, 6}, {12, 10, 3, 3}, {.groups = 2}},
    {"depthwise", {2, 32, 7, 7}, {32, 1, 3, 3}, {.strides = {2, 2}, .groups = 32}},
    {"depthwise_padded", {2, 20, 7, 7}, {20, 1, 3, 3}, {.groups = 20}},
    {"depthwise_multiplied", {1, 5, 6, 6}, {10, 1, 3, 3}, {.groups = 5}},
    {"pointwise", {2, 24, 5, 5}, {40, 24, 1, 1}, {.padding = Padding::kValid}},
    {"empty_batch", {0, 3, 5, 5}, {4, 3, 3, 3}, {}},
    {"no_input_channels", {2, 0, 5, 5}, {4, 0, 3, 3}, {}},
    {"no_output_channels", {2, 3, 5, 5}, {0, 3, 3, 3}, {}},
    {"empty_image", {2, 3, 0, 5}, {4, 3, 3, 3}, {}},
};

class Conv2dTest : public testing::TestWithParam<ConvolutionCase> {
 protected:
  ReferenceConvolution reference{GetParam().x, GetParam().w, GetParam().options};
  Array x = random_array(reference.x, 1), w = random_array(reference.w, 2), dy = random_array(reference.y, 3);
  Graph graph;
  Tensor input(int i, const Array& value) { return graph.input(i, value.type(), SourceLocation::current()); }
};

TEST_P(Conv2dTest, IsTheSumOfProducts) {
  const Tensor y = conv2d(input(0, x), input(1, w), GetParam().options);
  expect_near(run_node(y, {x, w}), reference.forward(x, w), 2e-6);
  expect_near(run_node(y, {x, w}, {}, 2), reference.forward(x, w), 2e-6);
}

TEST_P(Conv2dTest, InputGradientIsTheAdjoint) {
  const Tensor dx = conv2d_input_gradient(reference.x, input(0, w), input(1, dy), GetParam().options);
  expect_near(run_node(dx, {w, dy}), reference.input_gradient(w, dy), 2e-6);
}

TEST_P(Conv2dTest, FilterGradientIsTheAdjoint) {
  const Tensor dw = conv2d_filter_gradient(input(0, x), reference.w, input(1, dy), GetParam().options);
  expect_near(run_node(dw, {x, dy}), reference.filter_gradient(x, dy), 5e-6);
  expect_near(run_node(dw, {x, dy}, {}, 2), reference.filter_gradient(x, dy), 5e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv2dTest, testing::ValuesIn(kConvolutions),
                         [](const auto& info) { return info.param.name; });

// The same case on a smaller image, through the autodiff driver, with the rewrite rules and without.
TEST(Conv2d, GradientMatchesFiniteDifferences) {
  const ConvolutionCase cases[] = {
      {"same", {2, 3, 4, 5}, {4, 3, 3, 3}, {}},
      {"stride", {1, 2, 5, 5}, {3, 2, 3, 2}, {.strides = {2, 2}}},
      {"depthwise", {1, 4, 4, 4}, {4, 1, 3, 3}, {.groups = 4}},
      {"explicit", {1, 2, 3, 3}, {2, 2, 2, 2}, {.dilations = {2, 1}, .padding = Padding::of(1, 0, 2, 1)}},
      {"one", {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {"empty", {0, 2, 3, 3}, {2, 2, 2, 2}, {}},
  };
  for (const ConvolutionCase& c : cases) {
    SCOPED_TRACE(c.name);
    check_gradients([&](std::span<const Tensor> in) { return conv2d(in[0], in[1], c.options); },
                    {random_array(c.x, 1), random_array(c.w, 2)});
    const Shape y = ReferenceConvolution(c.x, c.w, c.options).y;
    check_gradients(
        [&](std::span<const Tensor> in) { return conv2d_input_gradient(c.x, in[0], in[1], c.options); },
        {random_array(c.w, 3), random_array(y, 4)});
    check_gradients(
        [&](std::span<const Tensor> in) { return conv2d_filter_gradient(in[0], c.w, in[1], c.options); },
        {random_array(c.x, 5), random_array(y, 6)});
  }
}

void expect_refused(const Shape& x, const Shape& w, const ConvolutionOptions& options, const char* piece) {
  Graph graph;
  const Tensor image = graph.input(0, {DType::kFloat32, x}, SourceLocation::current());
  const Tensor filter = graph.input(1, {DType::kFloat32, w}, SourceLocation::current());
  try {
    conv2d(image, filter, options);
    FAIL() << "accepted " << to_string(x) << " and " << to_string(w);
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(piece));
    EXPECT_THAT(error.what(), testing::HasSubstr("conv2d_test.cc"));
  }
}

TEST(Conv2dErrors, SayWhatDoesNotFit) {
  expect_refused({2, 3, 5}, {4, 3, 3, 3}, {}, "[batch, channels, height, width]");
  expect_refused({2, 3, 5, 5}, {4, 3, 3}, {}, "out_channels");
  expect_refused({2, 3, 5, 5}, {4, 2, 3, 3}, {}, "as many input channels");
  expect_refused({2, 4, 5, 5}, {3, 2, 3, 3}, {.groups = 2}, "multiple of the 2 groups");
  expect_refused({2, 4, 5, 5}, {3, 4, 3, 3}, {.groups = 0}, "at least one group");
  expect_refused({2, 4, 5, 5}, {3, 4, 3, 3}, {.strides = {0, 1}}, "strides of at least 1");
  expect_refused({2, 4, 5, 5}, {3, 4, 3, 3}, {.dilations = {1, -1}}, "dilations of at least 1");
  expect_refused({2, 4, 5, 5}, {3, 4, 3, 3}, {.padding = Padding::of(-1)}, "padding sizes of at least 0");
  expect_refused({2, 4, 5, 5}, {3, 4, 6, 3}, {.padding = Padding::kValid}, "spans 6 of 5 pixels");
  expect_refused({2, 4, 5, 5}, {3, 4, 0, 3}, {}, "window of at least 1 x 1");
}

}  // namespace
}  // namespace mox::test
