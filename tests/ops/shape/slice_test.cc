// slice and pad.
#include <gmock/gmock-more-matchers.h>

#include "ops/shape/shape.h"
#include "tests/ops/run_op.h"

namespace mox::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

TEST(Slice, TakesABox) {
  const Array x = counting({4, 5, 6});
  const Array y = run_op([](Tensors in) { return slice(in[0], {1, 2, 3}, {2, 3, 2}); }, {x});
  std::vector<float> expected;
  for (int i = 1; i < 3; ++i)
    for (int j = 2; j < 5; ++j)
      for (int k = 3; k < 5; ++k) expected.push_back(static_cast<float>(i * 30 + j * 6 + k));
  EXPECT_EQ(values_of<float>(y), expected);
}

TEST(Slice, ReachesToTheEndForMinusOne) {
  const Array y = run_op(
      [](Tensors in) {
        return slice(in[0], {1, 0}, {-1, 2});
      },
      {counting<int32_t>({3, 3})});
  EXPECT_THAT(values_of<int32_t>(y), ElementsAre(3, 4, 6, 7));
}

TEST(Slice, TakesEmptyBoxesAndScalars) {
  EXPECT_EQ(run_op(
                [](Tensors in) {
                  return slice(in[0], {3, 0}, {-1, 2});
                },
                {counting({3, 3})})
                .shape(),
            (Shape{0, 2}));
  EXPECT_THAT(values_of<float>(run_op([](Tensors in) { return slice(in[0], {}, {}); }, {counting({})})),
              ElementsAre(0));
}

TEST(Slice, IsExactOnLargeBoxes) {
  const Array x = counting({300, 7, 50});
  const Array y = run_op([](Tensors in) { return slice(in[0], {3, 1, 5}, {290, 5, 40}); }, {x});
  size_t at = 0;
  for (int i = 3; i < 293; ++i)
    for (int j = 1; j < 6; ++j)
      for (int k = 5; k < 45; ++k)
        ASSERT_EQ(y.values<float>()[at++], static_cast<float>((i * 7 + j) * 50 + k));
}

TEST(Slice, RefusesBoxesOutside) {
  const auto error = [](std::vector<int64_t> begin, std::vector<int64_t> size) {
    return build_error([&](Tensors in) { return std::vector{slice(in[0], begin, size)}; },
                       {{DType::kFloat32, {3, 4}}});
  };
  EXPECT_THAT(error({0}, {1}), HasSubstr("a begin and a size for every axis"));
  EXPECT_THAT(error({4, 0}, {0, 0}), HasSubstr("begin in [0, 3] on axis 0, not 4"));
  EXPECT_THAT(error({0, -1}, {1, 1}), HasSubstr("begin in [0, 4] on axis 1, not -1"));
  EXPECT_THAT(error({0, 2}, {1, 3}), HasSubstr("size in [0, 2] (or -1: to the end) on axis 1, not 3"));
}

TEST(Pad, SurroundsWithTheValue) {
  const Array y = run_op([](Tensors in) { return pad(in[0], {{1, 0}, {0, 2}}, 7); }, {counting({2, 2})});
  EXPECT_EQ(y.shape(), (Shape{3, 4}));
  EXPECT_THAT(values_of<float>(y), ElementsAre(7, 7, 7, 7, 0, 1, 7, 7, 2, 3, 7, 7));
}

TEST(Pad, TakesEveryDTypeAndEmptyTensors) {
  EXPECT_THAT(values_of<uint8_t>(run_op(
                  [](Tensors in) {
                    return pad(in[0], {{1, 1}}, 255);
                  },
                  {counting<uint8_t>({2})})),
              ElementsAre(255, 0, 1, 255));
  EXPECT_THAT(values_of<bool>(run_op(
                  [](Tensors in) {
                    return pad(in[0], {{1, 0}}, 1);
                  },
                  {counting<bool>({1})})),
              ElementsAre(true, false));
  EXPECT_THAT(values_of<int64_t>(run_op(
                  [](Tensors in) {
                    return pad(in[0], {{1, 1}, {0, 0}}, -3);
                  },
                  {counting<int64_t>({0, 1})})),
              ElementsAre(-3, -3));
}

TEST(Pad, RefusesWrongAmountsAndValues) {
  const auto error = [](std::vector<PadAmount> amounts, double value, DType dtype = DType::kFloat32) {
    return build_error([&](Tensors in) { return std::vector{pad(in[0], amounts, value)}; }, {{dtype, {3}}});
  };
  EXPECT_THAT(error({}, 0), HasSubstr("an amount for every axis"));
  EXPECT_THAT(error({{-1, 0}}, 0), HasSubstr("amounts >= 0"));
  EXPECT_THAT(error({{INT64_MAX, INT64_MAX}}, 0), HasSubstr("fits 64 bits"));
  EXPECT_THAT(error({{INT64_MAX / 2, 0}}, 0), HasSubstr("2^56 elements"));
  EXPECT_THAT(error({{1, 1}}, 0.5, DType::kInt32), HasSubstr("a value of int32, not 0.5"));
  EXPECT_THAT(error({{1, 1}}, 256, DType::kUInt8), HasSubstr("a value of uint8, not 256"));
  EXPECT_THAT(error({{1, 1}}, 2, DType::kBool), HasSubstr("a value of bool, not 2"));
}

}  // namespace
}  // namespace mox::test
