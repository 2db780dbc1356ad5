#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "ops/normalisation/normalisation.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "tests/ops/kernel_testing.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

class BiasAddTest : public testing::TestWithParam<Shape> {
 protected:
  Shape shape = GetParam();
  int axis = shape.rank() == 4 ? 1 : shape.rank() - 1;
  Array x = random_array(shape, 1), bias = random_array({shape[axis]}, 2);
  Graph graph;
  Tensor input = graph.input(0, x.type(), SourceLocation::current());
  int64_t channel_of(int64_t index) const {
    for (int i = shape.rank() - 1; i > axis; --i) index /= shape[i];
    return index % shape[axis];
  }
  std::vector<Layout> layouts() const {
    std::vector<Layout> result = {Layout::plain(x.type())};
    if (shape.rank() != 4 || shape.elements() == 0) return result;
    const int64_t n = shape[0], c = shape[1], h = shape[2], w = shape[3];
    result.push_back(Layout::blocked(x.type(), {n, c, h, w}, {h * w * c, 1, w * c, c}, {}));
    for (const int64_t block : {8, 16}) {
      const int64_t padded = (c + block - 1) / block * block;
      result.push_back(Layout::blocked(x.type(), {n, padded, h, w},
                                       {padded * h * w, h * w * block, w * block, block}, {{1, block}}));
    }
    return result;
  }
};

TEST_P(BiasAddTest, AddsOneNumberAChannelInEveryLayout) {
  Array expected(DType::kFloat32, shape);
  for (size_t i = 0; i < expected.values<float>().size(); ++i)
    expected.values<float>()[i] =
        x.values<float>()[i] + bias.values<float>()[channel_of(static_cast<int64_t>(i))];
  const Tensor y = bias_add(input, graph.input(1, bias.type(), SourceLocation::current()));
  for (const Layout& layout : layouts()) {
    Kernel kernel;
    expect_near(run_node(y, {x, bias}, {layout, Layout::plain(bias.type())}, 2, &kernel), expected, 0);
    EXPECT_EQ(kernel.output_layouts[0], layout) << layout.to_string();
  }
}

TEST_P(BiasAddTest, GradientSumsTheChannelAlikeOnAnyTeam) {
  std::vector<double> total(static_cast<size_t>(shape[axis]));
  for (size_t i = 0; i < x.values<float>().size(); ++i)
    total[channel_of(static_cast<int64_t>(i))] += static_cast<double>(x.values<float>()[i]);
  Array expected(DType::kFloat32, {shape[axis]});
  std::copy(total.begin(), total.end(), expected.values<float>().begin());
  const Tensor sum = bias_add_gradient(input);
  for (const Layout& layout : layouts()) {
    const Array one = run_node(sum, {x}, {layout}, 1);
    expect_near(one, expected, 1e-5);
    EXPECT_TRUE(std::ranges::equal(one.as_bytes(), run_node(sum, {x}, {layout}, 2).as_bytes()))
        << layout.to_string();
  }
}

TEST_P(BiasAddTest, BroadcastRepeatsTheBias) {
  Array expected(DType::kFloat32, shape);
  for (size_t i = 0; i < expected.values<float>().size(); ++i)
    expected.values<float>()[i] = bias.values<float>()[channel_of(static_cast<int64_t>(i))];
  expect_near(run_node(bias_broadcast(graph.input(1, bias.type(), SourceLocation::current()), shape), {bias}),
              expected, 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BiasAddTest,
                         testing::Values(Shape{100, 10}, Shape{1, 1}, Shape{300, 33}, Shape{4, 3, 5},
                                         Shape{0, 4}, Shape{4, 0}, Shape{2, 32, 14, 14}, Shape{3, 20, 5, 7},
                                         Shape{2, 1, 4, 4}, Shape{2, 3, 1, 1}, Shape{0, 3, 4, 4},
                                         Shape{2, 3, 0, 4}, Shape{2, 16, 40, 40}));

TEST(BiasAdd, GradientMatchesFiniteDifferences) {
  for (const Shape& shape : {Shape{3, 4}, Shape{2, 3, 2, 2}, Shape{2, 3, 4}, Shape{1, 1}, Shape{0, 3}}) {
    const int64_t channels = shape[shape.rank() == 4 ? 1 : shape.rank() - 1];
    check_gradients([](std::span<const Tensor> in) { return bias_add(in[0], in[1]); },
                    {random_array(shape, 1), random_array({channels}, 2)});
    check_gradients([](std::span<const Tensor> in) { return bias_add_gradient(in[0]); },
                    {random_array(shape, 3)});
    check_gradients([&](std::span<const Tensor> in) { return bias_broadcast(in[0], shape); },
                    {random_array({channels}, 4)});
  }
}

TEST(BiasAddErrors, SayWhatDoesNotFit) {
  Graph graph;
  auto input = [&](int i, DType dtype, Shape shape) {
    return graph.input(i, {dtype, std::move(shape)}, SourceLocation::current());
  };
  const Tensor x = input(0, DType::kFloat32, {2, 3, 4, 4});
  EXPECT_THAT([&] { bias_add(x, input(1, DType::kFloat32, {4})); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("a bias [3]")));
  EXPECT_THAT([&] { bias_add(x, input(2, DType::kInt32, {3})); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("float32")));
  EXPECT_THAT([&] { bias_add(input(3, DType::kFloat32, {3}), input(4, DType::kFloat32, {3})); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("rank 2")));
}

}  // namespace
}  // namespace mox::test
