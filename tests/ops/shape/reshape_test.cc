// reshape, flatten, expand_dims and squeeze: the same elements under another shape.
#include <gmock/gmock-more-matchers.h>

#include "ops/shape/shape.h"
#include "tests/ops/run_op.h"

namespace mox::test {
namespace {

using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

TEST(Reshape, KeepsTheElementsInOrder) {
  const Array x = counting({2, 3, 4});
  for (const auto& dims :
       std::vector<std::vector<int64_t>>{{24}, {4, 6}, {-1, 8}, {24, -1}, {1, 2, -1, 1, 6}}) {
    const Array y = run_op([&](Tensors in) { return reshape(in[0], dims); }, {x});
    EXPECT_EQ(values_of<float>(y), values_of<float>(x));
  }
}

TEST(Reshape, ComputesTheUnknownExtent) {
  const Array y = run_op([](Tensors in) { return reshape(in[0], {4, -1}); }, {counting<int64_t>({2, 3, 4})});
  EXPECT_EQ(y.shape(), (Shape{4, 6}));
  EXPECT_EQ(y.dtype(), DType::kInt64);
}

TEST(Reshape, TakesScalarsAndEmptyTensors) {
  EXPECT_EQ(run_op([](Tensors in) { return reshape(in[0], {}); }, {counting({1, 1})}).shape(), Shape{});
  EXPECT_EQ(run_op(
                [](Tensors in) {
                  return reshape(in[0], {5, 0});
                },
                {counting({0, 3})})
                .shape(),
            (Shape{5, 0}));
  EXPECT_EQ(run_op(
                [](Tensors in) {
                  return reshape(in[0], {-1, 3});
                },
                {counting({0, 3})})
                .shape(),
            (Shape{0, 3}));
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  const auto error = [](std::vector<int64_t> dims, Shape shape) {
    return build_error([&](Tensors in) { return std::vector{reshape(in[0], dims)}; },
                       {{DType::kFloat32, shape}});
  };
  EXPECT_THAT(error({5, 5}, {2, 3}), HasSubstr("a shape of 6 elements"));
  EXPECT_THAT(error({2, 2}, {2, 3}), HasSubstr("a shape of 6 elements"));
  EXPECT_THAT(error({-1, -1}, {2, 3}), HasSubstr("at most one extent of -1"));
  EXPECT_THAT(error({-2, 3}, {2, 3}), HasSubstr("extents >= 0"));
  EXPECT_THAT(error({-1, 4}, {2, 3}), HasSubstr("divides 6 elements"));
  EXPECT_THAT(error({-1, 0}, {0, 3}), HasSubstr("no extent of 0 beside -1"));
  EXPECT_THAT(error({int64_t{1} << 62, int64_t{1} << 62}, {2, 3}), HasSubstr("a shape of 6 elements"));
  EXPECT_THAT(error({5}, {2, 3}), HasSubstr("reshape_test.cc"));
}

TEST(Flatten, KeepsTheFirstAxis) {
  const auto shape_of = [](Shape shape) {
    return run_op([](Tensors in) { return flatten(in[0]); }, {counting(std::move(shape))}).shape();
  };
  EXPECT_EQ(shape_of({2, 3, 4}), (Shape{2, 12}));
  EXPECT_EQ(shape_of({5}), (Shape{5, 1}));
  EXPECT_EQ(shape_of({0, 3, 4}), (Shape{0, 12}));
  EXPECT_EQ(shape_of({3, 0, 4}), (Shape{3, 0}));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{flatten(in[0])}; }, {{DType::kFloat32, {}}}),
              HasSubstr("at least one axis"));
}

TEST(ExpandDims, InsertsAnAxis) {
  const auto shape_of = [](int64_t axis) {
    return run_op([&](Tensors in) { return expand_dims(in[0], axis); }, {counting({2, 3})}).shape();
  };
  EXPECT_EQ(shape_of(0), (Shape{1, 2, 3}));
  EXPECT_EQ(shape_of(1), (Shape{2, 1, 3}));
  EXPECT_EQ(shape_of(-1), (Shape{2, 3, 1}));
  EXPECT_EQ(shape_of(-3), (Shape{1, 2, 3}));
  EXPECT_THAT(
      build_error([](Tensors in) { return std::vector{expand_dims(in[0], 3)}; }, {{DType::kFloat32, {2, 3}}}),
      HasSubstr("an axis in [-3, 3), not 3"));
}

TEST(Squeeze, RemovesAxesOfExtentOne) {
  const auto shape_of = [](std::vector<int64_t> axes) {
    return run_op([&](Tensors in) { return squeeze(in[0], axes); }, {counting({1, 2, 1, 3})}).shape();
  };
  EXPECT_EQ(shape_of({}), (Shape{2, 3}));
  EXPECT_EQ(shape_of({0}), (Shape{2, 1, 3}));
  EXPECT_EQ(shape_of({-2}), (Shape{1, 2, 3}));
  EXPECT_EQ(shape_of({2, 0}), (Shape{2, 3}));
  const auto error = [](std::vector<int64_t> axes) {
    return build_error([&](Tensors in) { return std::vector{squeeze(in[0], axes)}; },
                       {{DType::kFloat32, {1, 2, 1, 3}}});
  };
  EXPECT_THAT(error({1}), HasSubstr("extent 1 on axis 1"));
  EXPECT_THAT(error({0, -4}), HasSubstr("every axis named once"));
  EXPECT_THAT(error({4}), HasSubstr("an axis in [-4, 4), not 4"));
}

}  // namespace
}  // namespace mox::test
