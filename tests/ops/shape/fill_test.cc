// fill, zeros_like, ones_like and constant.
#include <gmock/gmock-more-matchers.h>

#include "ops/shape/shape.h"
#include "tests/ops/run_op.h"

namespace mox::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

TEST(Fill, RepeatsTheValue) {
  EXPECT_THAT(values_of<float>(run_op(
                  [](Tensors) {
                    return fill({2, 2}, 1.5);
                  },
                  {})),
              ElementsAre(1.5, 1.5, 1.5, 1.5));
  EXPECT_THAT(values_of<int64_t>(run_op([](Tensors) { return fill({2}, -7, DType::kInt64); }, {})),
              ElementsAre(-7, -7));
  EXPECT_THAT(values_of<bool>(run_op([](Tensors) { return fill({1}, 1, DType::kBool); }, {})),
              ElementsAre(true));
  EXPECT_EQ(run_op([](Tensors) { return fill({0, 3}, 1); }, {}).shape(), (Shape{0, 3}));
  EXPECT_THAT(build_error([](Tensors) { return std::vector{fill({2}, 0.5, DType::kInt32)}; }, {}),
              HasSubstr("a value of int32, not 0.5"));
  EXPECT_THAT(build_error([](Tensors) { return std::vector{fill({-2}, 0.5)}; }, {}),
              HasSubstr("extents >= 0"));
}

TEST(Fill, RefusesNumbersThatOverflow) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16})
    EXPECT_THAT(build_error([&](Tensors) { return std::vector{fill({2}, -1e39, dtype)}; }, {}),
                HasSubstr("a value of"));
  EXPECT_THAT(build_error(
                  [](Tensors in) {
                    return std::vector{pad(in[0], {{1, 0}}, 1e39)};
                  },
                  {TensorType{DType::kFloat32, {2}}}),
              HasSubstr("a value of float32"));
}

TEST(Fill, LikeTakesTheType) {
  const Array zeros = run_op([](Tensors in) { return zeros_like(in[0]); }, {counting<int32_t>({2, 1})});
  EXPECT_EQ(zeros.type(), (TensorType{DType::kInt32, {2, 1}}));
  EXPECT_THAT(values_of<int32_t>(zeros), ElementsAre(0, 0));
  EXPECT_THAT(
      values_of<uint8_t>(run_op([](Tensors in) { return ones_like(in[0]); }, {counting<uint8_t>({2})})),
      ElementsAre(1, 1));
  EXPECT_THAT(message_of<InvalidArgument>([] { zeros_like(Tensor()); }), HasSubstr("undefined tensor"));
}

TEST(Constant, KeepsTheArrayAsItWas) {
  Array value = Array::from<int32_t>({2}, {1, 2});
  const Array y = run_op(
      [&](Tensors) {
        const Tensor tensor = constant(value);
        value.values<int32_t>()[0] = 99;
        return tensor;
      },
      {});
  EXPECT_THAT(values_of<int32_t>(y), ElementsAre(1, 2));
  EXPECT_EQ(run_op([](Tensors) { return constant(2.5f); }, {}).item(), 2.5);
}

TEST(Constant, RefusesAnUndefinedArrayAndACallOutsideOfAGraph) {
  EXPECT_THAT(build_error([](Tensors) { return std::vector{constant(Array())}; }, {}),
              HasSubstr("undefined"));
  EXPECT_THROW(constant(1.0f), FailedPrecondition);
}

}  // namespace
}  // namespace mox::test
