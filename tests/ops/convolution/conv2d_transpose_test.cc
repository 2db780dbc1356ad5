#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <ostream>

#include "ops/convolution/conv2d.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "tests/ops/kernel_testing.h"
#include "tests/ops/reference_convolution.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

struct TransposeCase {
  const char* name;
  Shape x, w;
  TransposedConvolutionOptions options;
  Shape y;
};

void PrintTo(const TransposeCase& c, std::ostream* stream) {
  *stream << to_string(c.x) << " by " << to_string(c.w);
}

const TransposeCase kTransposes[] = {
    {"same_doubles", {2, 16, 4, 5}, {16, 8, 5, 5}, {.strides = {2, 2}}, {2, 8, 8, 10}},
    {"valid", {2, 3, 4, 4}, {3, 20, 3, 3}, {.strides = {2, 2}, .padding = Padding::kValid}, {2, 20, 9, 9}},
    {"valid_more",
     {1, 3, 4, 4},
     {3, 5, 3, 3},
     {.strides = {2, 2}, .padding = Padding::kValid, .output_padding = {1, 0}},
     {1, 5, 10, 9}},
    {"explicit_gan",
     {2, 6, 4, 4},
     {6, 16, 4, 4},
     {.strides = {2, 2}, .padding = Padding::of(1)},
     {2, 16, 8, 8}},
    {"dilated", {1, 2, 5, 5}, {2, 3, 3, 3}, {.dilations = {2, 2}, .padding = Padding::kValid}, {1, 3, 9, 9}},
    {"groups", {1, 6, 5, 5}, {6, 4, 3, 3}, {.groups = 2}, {1, 8, 5, 5}},
    {"depthwise", {1, 16, 3, 3}, {16, 1, 2, 2}, {.strides = {2, 2}, .groups = 16}, {1, 16, 6, 6}},
    {"one_pixel", {1, 4, 1, 1}, {4, 8, 4, 4}, {.padding = Padding::kValid}, {1, 8, 4, 4}},
    {"empty_batch", {0, 4, 3, 3}, {4, 8, 4, 4}, {.strides = {2, 2}}, {0, 8, 6, 6}},
};

class Conv2dTransposeTest : public testing::TestWithParam<TransposeCase> {};

TEST_P(Conv2dTransposeTest, IsTheAdjointOfTheConvolution) {
  const TransposeCase& c = GetParam();
  const ReferenceConvolution reference(c.y, c.w,
                                       {.strides = c.options.strides,
                                        .dilations = c.options.dilations,
                                        .groups = c.options.groups,
                                        .padding = c.options.padding});
  ASSERT_EQ(reference.y, c.x) << "the case is wrong";
  const Array x = random_array(c.x, 1), w = random_array(c.w, 2);
  Graph graph;
  const Tensor y = conv2d_transpose(graph.input(0, x.type(), SourceLocation::current()),
                                    graph.input(1, w.type(), SourceLocation::current()), c.options);
  expect_near(run_node(y, {x, w}), reference.input_gradient(w, x), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv2dTransposeTest, testing::ValuesIn(kTransposes),
                         [](const auto& info) { return info.param.name; });

TEST(Conv2dTranspose, GradientMatchesFiniteDifferences) {
  check_gradients(
      [](std::span<const Tensor> in) {
        return conv2d_transpose(in[0], in[1], {.strides = {2, 2}});
      },
      {random_array({1, 3, 2, 3}, 1), random_array({3, 2, 3, 3}, 2)});
  check_gradients(
      [](std::span<const Tensor> in) {
        return conv2d_transpose(
            in[0], in[1],
            {.strides = {2, 1}, .groups = 2, .padding = Padding::of(1), .output_padding = {1, 0}});
      },
      {random_array({2, 4, 3, 3}, 3), random_array({4, 1, 3, 3}, 4)});
}

TEST(Conv2dTransposeErrors, SayWhatDoesNotFit) {
  auto expect_refused = [](const Shape& x, const Shape& w, const TransposedConvolutionOptions& options,
                           const char* piece) {
    Graph graph;
    const Tensor image = graph.input(0, {DType::kFloat32, x}, SourceLocation::current());
    const Tensor filter = graph.input(1, {DType::kFloat32, w}, SourceLocation::current());
    EXPECT_THAT([&] { conv2d_transpose(image, filter, options); },
                testing::ThrowsMessage<InvalidArgument>(
                    testing::AllOf(testing::HasSubstr(piece), testing::HasSubstr("conv2d_transpose"))));
  };
  expect_refused({2, 3, 4, 4}, {4, 3, 3, 3}, {}, "as many input channels");
  expect_refused({2, 3, 4}, {3, 3, 3, 3}, {}, "[batch, channels, height, width]");
  expect_refused({2, 3, 4, 4}, {3, 3, 3, 3}, {.output_padding = {1, 0}}, "output padding");
  expect_refused({2, 3, 4, 4}, {3, 3, 3, 3},
                 {.strides = {2, 2}, .padding = Padding::kValid, .output_padding = {2, 0}}, "output padding");
  expect_refused({2, 3, 4, 4}, {3, 3, 3, 3}, {.groups = 2}, "groups");
  expect_refused({2, 3, 4, 4}, {3, 3, 3, 3}, {.strides = {0, 1}}, "strides of at least 1");
  expect_refused({2, 3, 1, 1}, {3, 3, 3, 3}, {.padding = Padding::of(4)}, "padding");
}

}  // namespace
}  // namespace mox::test
