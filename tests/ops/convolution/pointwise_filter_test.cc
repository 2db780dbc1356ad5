// Filter gradients of 1x1 convolutions against a plain sum in double precision.
#include "ops/convolution/internal/pointwise_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "ops/convolution/conv2d.h"
#include "ops/processor/processor.h"
#include "tests/ops/kernel_testing.h"
#include "tests/support/evaluate.h"

namespace mox::test {
namespace {

struct PointwiseCase {
  Shape x;
  int64_t out;
  std::array<int64_t, 2> strides = {1, 1};

  ConvolutionOptions options() const { return {.strides = strides, .padding = Padding::kValid}; }
  ConvolutionGeometry geometry(DType dtype) const {
    return resolve_convolution(convolution_attributes(options()), {dtype, x},
                               {DType::kFloat32, {out, x[1], 1, 1}});
  }
};

void PrintTo(const PointwiseCase& c, std::ostream* stream) {
  *stream << to_string(c.x) << " to " << c.out << " by " << c.strides[0] << ", " << c.strides[1];
}

// Multiples of 1/64: bfloat16 holds them, and float32 the sums of some thousand of their products, so results
// are exact.
Array coarse_array(const Shape& shape, uint64_t seed) {
  Array array = random_array(shape, seed);
  for (float& value : array.values<float>()) value = std::round(value * 64) / 64;
  return array;
}

Array in_bfloat16(const Array& array) {
  Array low(DType::kBFloat16, array.shape());
  const auto from = array.values<float>();
  std::ranges::transform(from, low.values<BFloat16>().begin(), [](float value) { return BFloat16(value); });
  return low;
}

Array sum_of_products(const PointwiseCase& c, const Array& x, const Array& dy) {
  const int64_t in = c.x[1], height = dy.shape()[2], width = dy.shape()[3];
  Array dw(DType::kFloat32, {c.out, in, 1, 1});
  for (int64_t o = 0; o < c.out; ++o)
    for (int64_t i = 0; i < in; ++i) {
      double sum = 0;
      for (int64_t n = 0; n < c.x[0]; ++n)
        for (int64_t row = 0; row < height; ++row)
          for (int64_t column = 0; column < width; ++column) {
            const int64_t in_dy = ((n * c.out + o) * height + row) * width + column;
            const int64_t in_x =
                ((n * in + i) * c.x[2] + row * c.strides[0]) * c.x[3] + column * c.strides[1];
            sum += static_cast<double>(dy.values<float>()[in_dy]) * x.values<float>()[in_x];
          }
      dw.values<float>()[o * in + i] = static_cast<float>(sum);
    }
  return dw;
}

// The kernel's result, twice from the same instance, in memory full of NaN.
Array run_pointwise(const PointwiseCase& c, const Array& x, const Array& dy, int threads) {
  const Team team(threads);
  team.enter();
  Graph graph;
  Node node;
  for (const Array* input : {&x, &dy})
    node.inputs.push_back(
        graph.input(static_cast<int>(node.inputs.size()), input->type(), SourceLocation::current()));
  node.outputs = {{DType::kFloat32, {c.out, c.x[1], 1, 1}}};
  const Kernel kernel = pointwise_filter_kernel(node, c.geometry(x.dtype()), team);
  EXPECT_TRUE(kernel.output_layouts[0].is_plain());
  const KernelFunction run = kernel.instantiate();
  std::vector<std::shared_ptr<std::byte>> memory;
  for (const Array* input : {&x, &dy}) {
    auto data = poisoned(input->type().bytes());
    std::memcpy(data.get(), input->data(), input->type().bytes());
    memory.push_back(converted(input->type(), Layout::plain(input->type()),
                               kernel.input_layouts[memory.size()], data, team));
  }
  std::shared_ptr<std::byte> result;
  for (int repeat = 0; repeat < 2; ++repeat) {
    result = poisoned(node.outputs[0].bytes());
    run_kernel(kernel, run, {memory[0].get(), memory[1].get()}, {result.get()}, team);
  }
  return Array(node.outputs[0], result).clone();
}

class PointwiseFilterTest : public ::testing::TestWithParam<PointwiseCase> {
 protected:
  PointwiseCase c = GetParam();
  Shape y = c.geometry(DType::kFloat32).y.shape;
};

TEST_P(PointwiseFilterTest, IsTheSumOfProducts) {
  const Array x = coarse_array(c.x, 1), dy = coarse_array(y, 2), expected = sum_of_products(c, x, dy);
  expect_close(run_pointwise(c, x, dy, 1), expected, 0, 0);
}

TEST_P(PointwiseFilterTest, IsTheSumOfProductsInBFloat16) {
  if (!processor().bfloat16_products) GTEST_SKIP() << "needs AVX512_BF16";
  const Array x = coarse_array(c.x, 1), dy = coarse_array(y, 2), expected = sum_of_products(c, x, dy);
  expect_close(run_pointwise(c, in_bfloat16(x), in_bfloat16(dy), 1), expected, 0, 0);
}

void expect_independence_of_the_team(const PointwiseCase& c, const Array& x, const Array& dy) {
  const Array alone = run_pointwise(c, x, dy, 1);
  for (const int threads : {2, 3, 5})
    EXPECT_TRUE(std::ranges::equal(alone.as_bytes(), run_pointwise(c, x, dy, threads).as_bytes()))
        << threads << " threads";
}

TEST_P(PointwiseFilterTest, DoesNotDependOnTheTeam) {
  expect_independence_of_the_team(c, random_array(c.x, 1), random_array(y, 2));
}

TEST_P(PointwiseFilterTest, DoesNotDependOnTheTeamInBFloat16) {
  if (!processor().bfloat16_products) GTEST_SKIP() << "needs AVX512_BF16";
  expect_independence_of_the_team(c, in_bfloat16(random_array(c.x, 1)), in_bfloat16(random_array(y, 2)));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PointwiseFilterTest,
    ::testing::Values(PointwiseCase{{1, 16, 1, 1}, 16}, PointwiseCase{{1, 48, 5, 5}, 80},
                      PointwiseCase{{3, 80, 7, 7}, 16}, PointwiseCase{{2, 32, 9, 11}, 48, {2, 2}},
                      PointwiseCase{{2, 48, 10, 7}, 32, {3, 3}}, PointwiseCase{{1, 64, 33, 31}, 64, {2, 3}},
                      PointwiseCase{{3, 96, 8, 9}, 32, {1, 2}}, PointwiseCase{{7, 112, 3, 3}, 16, {2, 1}},
                      // Several chunks of positions, in parts of the sums.
                      PointwiseCase{{16, 64, 14, 14}, 64}, PointwiseCase{{1, 16, 41, 41}, 16},
                      PointwiseCase{{4, 80, 28, 27}, 48},
                      // Several blocks of the filter, of different sizes.
                      PointwiseCase{{5, 144, 7, 7}, 272}, PointwiseCase{{3, 592, 6, 5}, 48},
                      PointwiseCase{{2, 272, 13, 9}, 304, {2, 2}}));

TEST(PointwiseFilter, IsTakenWhereItPays) {
  const auto implementation = [](const Shape& x, const Shape& w, const ConvolutionOptions& options) {
    Graph graph;
    const SourceLocation here = SourceLocation::current();
    const TensorType image{DType::kFloat32, x};
    const ConvolutionGeometry geometry =
        resolve_convolution(convolution_attributes(options), image, {DType::kFloat32, w});
    const Tensor dw =
        conv2d_filter_gradient(graph.input(0, image, here), w, graph.input(1, geometry.y, here), options);
    const Team team(1);
    const Node& node = *dw.node();
    const KernelRequest request{
        node, {Layout::plain(image), Layout::plain(geometry.y)}, {false, false}, team};
    return node.op->compile(request).implementation;
  };
  const char* ours = processor().lanes >= 16 ? "pointwise:avx512_core" : "pointwise:avx2";
  const Shape x{4, 256, 14, 14}, large{16, 256, 14, 14};
  EXPECT_EQ(implementation(x, {256, 256, 1, 1}, {}), ours);
  EXPECT_EQ(implementation(large, {256, 256, 1, 1}, {.strides = {2, 2}}), ours);
  EXPECT_NE(implementation(large, {256, 256, 1, 1}, {}), ours);
  EXPECT_NE(implementation(x, {240, 256, 1, 1}, {}), ours);
  EXPECT_NE(implementation(x, {260, 256, 1, 1}, {}), ours);
  EXPECT_NE(implementation(x, {256, 256, 1, 2}, {}), ours);
  EXPECT_NE(implementation(x, {512, 128, 1, 1}, {.groups = 2}), ours);
  EXPECT_NE(implementation(x, {256, 256, 1, 1}, {.padding = Padding::of(1)}), ours);
}

}  // namespace
}  // namespace mox::test
