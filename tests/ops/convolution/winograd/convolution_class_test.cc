// Classes of convolutions, as text and as what decides which way a convolution is computed.
#include "ops/convolution/winograd/convolution_class.h"

#include <gtest/gtest.h>

#include "ops/convolution/convolution.h"
#include "ops/convolution/winograd/winograd.h"
#include "ops/fusion/default_rules.h"
#include "runtime/exec/plan_instance.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

using R = ConvolutionResult;

ConvolutionGeometry geometry(int64_t in, int64_t out, int64_t window = 3, int64_t stride = 1) {
  const ConvolutionOptions options{.strides = {stride, stride}, .padding = Padding::of(window / 2)};
  return resolve_convolution(convolution_attributes(options), {DType::kFloat32, {16, in, 16, 16}},
                             {DType::kFloat32, {out, in, window, window}});
}

TEST(ConvolutionClassTest, IsOfWindowStrideAndChannels) {
  EXPECT_EQ(class_of(geometry(64, 64), R::kOutput), (ConvolutionClass{3, 1, 64, R::kOutput}));
  EXPECT_EQ(class_of(geometry(16, 64, 5), R::kFilterGradient),
            (ConvolutionClass{5, 1, 32, R::kFilterGradient}));
  EXPECT_EQ(class_of(geometry(64, 128, 3, 2), R::kInputGradient),
            (ConvolutionClass{3, 2, 128, R::kInputGradient}));
  EXPECT_EQ(class_of(geometry(16, 16), R::kOutput).channels, 16);
  EXPECT_EQ(class_of(geometry(1024, 2048), R::kOutput).channels, 512);
}

TEST(ConvolutionClassTest, IsReadBackFromItsText) {
  const ConvolutionClasses classes = {
      {3, 2, 128, R::kFilterGradient}, {5, 1, 16, R::kOutput}, {3, 1, 512, R::kInputGradient}};
  EXPECT_EQ(to_string(classes), "3x3/1 512 dx, 3x3/2 128 dw, 5x5/1 16 y");
  EXPECT_EQ(convolution_classes_from_string(to_string(classes)), classes);
  EXPECT_EQ(to_string(ConvolutionClasses()), "none");
  EXPECT_EQ(convolution_classes_from_string("none"), ConvolutionClasses());
}

TEST(ConvolutionClassTest, OtherTextsAreNone) {
  for (const char* text : {"", "3x3", "3x3/1 16", "3x3/1 16 z", "3x5/1 16 y", "3x3/1 16 y,", "3x3/1 16 y, ",
                           "3x3/1 16 y,3x3/2 16 y", "99999999999x3/1 16 y", "-3x-3/1 16 y ", "03x3/1 16 y"})
    EXPECT_FALSE(convolution_classes_from_string(text).has_value()) << text;
}

// Only what is of the class sums directly.
TEST(ConvolutionClassTest, DecidesHowOneResultIsComputed) {
  const Team team(1);
  const auto takes_winograd = [&](R result, const ConvolutionClasses& classes) {
    Graph graph;
    const GraphScope scope(graph);
    const SourceLocation here = SourceLocation::current();
    const ConvolutionGeometry g = geometry(16, 16);
    const ConvolutionOptions options{.padding = Padding::of(1)};
    const Tensor x = graph.input(0, g.x, here), w = graph.input(1, g.w, here), dy = graph.input(2, g.y, here);
    const Tensor fetch = result == R::kOutput          ? conv2d(x, w, options)
                         : result == R::kInputGradient ? conv2d_input_gradient(x.shape(), w, dy, options)
                                                       : conv2d_filter_gradient(x, w.shape(), dy, options);
    CompileOptions compile = test::compile_options();
    compile.rules = default_rules({.direct_classes = classes});
    const auto plan =
        Plan::compile(graph, {.fetches = {fetch}, .gradients = {}, .after_step_values = {}}, compile, team);
    return plan->describe().find(" winograd") != std::string::npos;
  };
  ASSERT_TRUE(winograd_pays(geometry(16, 16)));
  constexpr R kResults[] = {R::kOutput, R::kInputGradient, R::kFilterGradient};
  for (const R result : kResults) {
    EXPECT_TRUE(takes_winograd(result, {}));
    for (const R direct : kResults) EXPECT_EQ(takes_winograd(result, {{3, 1, 16, direct}}), result != direct);
    EXPECT_TRUE(takes_winograd(result, {{3, 1, 32, result}, {3, 2, 16, result}, {5, 1, 16, result}}));
  }
}

}  // namespace
}  // namespace mox
