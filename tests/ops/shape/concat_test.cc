// concat, split, stack and unstack.
#include <gmock/gmock-more-matchers.h>

#include "ops/shape/shape.h"
#include "tests/ops/run_op.h"

namespace mox::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

// Element by element: which input, and where in it, each element of the result comes from.
std::vector<float> reference_concat(const std::vector<Array>& inputs, int axis) {
  int64_t outer = 1;
  for (int d = 0; d < axis; ++d) outer *= inputs[0].shape()[d];
  std::vector<float> result;
  for (int64_t o = 0; o < outer; ++o)
    for (const Array& input : inputs) {
      const int64_t part = input.elements() / std::max<int64_t>(outer, 1);
      for (int64_t i = 0; i < part; ++i) result.push_back(input.values<float>()[o * part + i]);
    }
  return result;
}

TEST(Concat, PutsInputsBehindEachOther) {
  for (int axis : {0, 1, 2}) {
    std::vector<Array> inputs;
    for (int64_t extent : {3, 1, 0, 4}) {
      std::vector<int64_t> dims{2, 3, 5};
      dims[axis] = extent;
      inputs.push_back(counting(Shape(dims)));
    }
    for (int64_t named : {axis, axis - 3}) {
      const Array y = run_op([&](Tensors in) { return concat({in.begin(), in.end()}, named); }, inputs);
      EXPECT_EQ(y.shape()[axis], 8);
      EXPECT_EQ(values_of<float>(y), reference_concat(inputs, axis));
    }
  }
}

TEST(Concat, IsExactForLargeInputsOnATeam) {
  const std::vector<Array> inputs{counting({130, 400}), counting({130, 7}), counting({130, 900})};
  const Array y = run_op([&](Tensors in) { return concat({in.begin(), in.end()}, 1); }, inputs);
  EXPECT_EQ(values_of<float>(y), reference_concat(inputs, 1));
}

TEST(Concat, TakesEveryDType) {
  const Array y = run_op([](Tensors in) { return concat({in[0], in[0]}, 0); }, {counting<bool>({2})});
  EXPECT_THAT(values_of<bool>(y), ElementsAre(false, true, false, true));
  const Array z = run_op([](Tensors in) { return concat({in[0]}, 0); }, {counting<int64_t>({3})});
  EXPECT_THAT(values_of<int64_t>(z), ElementsAre(0, 1, 2));
}

// The sum of their extents wraps around to 0.
TEST(Concat, RefusesMoreThan64Bits) {
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{concat(std::vector<Tensor>(256, in[0]), 1)}; },
                          {TensorType{DType::kFloat32, {0, int64_t{1} << 56}}}),
              HasSubstr("64 bits"));
}

TEST(Concat, RefusesInputsThatDisagree) {
  const auto error = [](const TensorType& a, const TensorType& b, int64_t axis) {
    return build_error([&](Tensors in) { return std::vector{concat({in[0], in[1]}, axis)}; }, {a, b});
  };
  EXPECT_THAT(error({DType::kFloat32, {2, 3}}, {DType::kFloat32, {2, 4}}, 0),
              HasSubstr("differ on axis 0 alone"));
  EXPECT_THAT(error({DType::kFloat32, {2, 3}}, {DType::kFloat32, {2}}, 0),
              HasSubstr("differ on axis 0 alone"));
  EXPECT_THAT(error({DType::kFloat32, {2}}, {DType::kInt32, {2}}, 0), HasSubstr("inputs of one dtype"));
  EXPECT_THAT(error({DType::kFloat32, {2}}, {DType::kFloat32, {2}}, 1),
              HasSubstr("an axis in [-1, 1), not 1"));
  EXPECT_THAT(error({DType::kFloat32, {}}, {DType::kFloat32, {}}, 0), HasSubstr("at least one axis"));
  Graph graph;
  GraphScope scope(graph);
  EXPECT_THAT(message_of<InvalidArgument>([] { concat({}, 0); }), HasSubstr("at least one input"));
}

TEST(Split, CutsIntoEqualParts) {
  const Array x = counting({2, 6, 2});
  const auto parts = run_ops([](Tensors in) { return split(in[0], 3, 1); }, {x});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(values_of<float>(parts[1]), ElementsAre(4, 5, 6, 7, 16, 17, 18, 19));
  EXPECT_EQ(reference_concat(parts, 1), values_of<float>(x));
}

TEST(Split, CutsIntoGivenSizes) {
  const Array x = counting({5, 2});
  const auto parts = run_ops([](Tensors in) { return split_sizes(in[0], {2, 0, 3}, -2); }, {x});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(values_of<float>(parts[0]), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(parts[1].shape(), (Shape{0, 2}));
  EXPECT_THAT(values_of<float>(parts[2]), ElementsAre(4, 5, 6, 7, 8, 9));
}

TEST(Split, RefusesPartsThatDoNotFit) {
  const TensorType type{DType::kFloat32, {6, 2}};
  EXPECT_THAT(build_error([](Tensors in) { return split(in[0], 4); }, {type}),
              HasSubstr("divides the extent 6"));
  EXPECT_THAT(build_error([](Tensors in) { return split(in[0], 0); }, {type}),
              HasSubstr("a number of parts"));
  EXPECT_THAT(build_error([](Tensors in) { return split(in[0], int64_t{1} << 60); }, {type}),
              HasSubstr("a number of parts"));
  EXPECT_THAT(build_error(
                  [](Tensors in) {
                    return split_sizes(in[0], {2, 3});
                  },
                  {type}),
              HasSubstr("sum is the extent 6"));
  EXPECT_THAT(build_error(
                  [](Tensors in) {
                    return split_sizes(in[0], {-1, 7});
                  },
                  {type}),
              HasSubstr("sizes >= 0"));
  EXPECT_THAT(build_error([](Tensors in) { return split_sizes(in[0], {}); }, {type}),
              HasSubstr("at least one size"));
}

TEST(Stack, MakesANewAxis) {
  const Array a = counting({2, 2}), b = Array::from<float>({2, 2}, {9, 8, 7, 6});
  const auto stacked = [&](int64_t axis) {
    return run_op([&](Tensors in) { return stack({in[0], in[1]}, axis); }, {a, b});
  };
  EXPECT_EQ(stacked(0).shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(values_of<float>(stacked(0)), ElementsAre(0, 1, 2, 3, 9, 8, 7, 6));
  EXPECT_THAT(values_of<float>(stacked(1)), ElementsAre(0, 1, 9, 8, 2, 3, 7, 6));
  EXPECT_THAT(values_of<float>(stacked(-1)), ElementsAre(0, 9, 1, 8, 2, 7, 3, 6));
  EXPECT_THAT(build_error(
                  [](Tensors in) {
                    return std::vector{stack({in[0], in[1]})};
                  },
                  {{DType::kFloat32, {2}}, {DType::kFloat32, {3}}}),
              HasSubstr("inputs of one type"));
}

TEST(Unstack, TakesTheAxisApart) {
  const auto slices = run_ops([](Tensors in) { return unstack(in[0], -1); }, {counting({2, 3})});
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0].shape(), Shape{2});
  EXPECT_THAT(values_of<float>(slices[2]), ElementsAre(2, 5));
  EXPECT_THAT(build_error([](Tensors in) { return unstack(in[0], 2); }, {{DType::kFloat32, {2, 3}}}),
              HasSubstr("an axis in [-2, 2), not 2"));
  EXPECT_THAT(build_error([](Tensors in) { return unstack(in[0]); }, {{DType::kFloat32, {0, 3}}}),
              HasSubstr("a number of parts"));
}

}  // namespace
}  // namespace mox::test
