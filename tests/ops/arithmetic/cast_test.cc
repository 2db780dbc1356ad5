#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <limits>

#include "ops/arithmetic/arithmetic.h"
#include "ops/comparison/comparison.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/shape.h"
#include "tests/support/gradient_check.h"

namespace mox {
namespace {

using ::testing::ElementsAre;

template <typename To>
std::vector<To> cast_to(const Array& x) {
  const Array y =
      test::evaluate_op([](std::span<const Tensor> in) { return cast(in[0], dtype_of<To>); }, {x});
  return {y.values<To>().begin(), y.values<To>().end()};
}

TEST(Cast, FromFloat) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  const Array x = Array::from<float>({7}, {0, 1.9f, -1.9f, 300, kNaN, kInfinity, -kInfinity});
  using Int = std::numeric_limits<int32_t>;
  using Long = std::numeric_limits<int64_t>;
  EXPECT_THAT(cast_to<int32_t>(x), ElementsAre(0, 1, -1, 300, 0, Int::max(), Int::min()));
  EXPECT_THAT(cast_to<int64_t>(x), ElementsAre(0, 1, -1, 300, 0, Long::max(), Long::min()));
  EXPECT_THAT(cast_to<uint8_t>(x), ElementsAre(0, 1, 0, 255, 0, 255, 0));
  EXPECT_THAT(cast_to<bool>(x), ElementsAre(false, true, true, true, true, true, true));
}

TEST(Cast, FromIntegersAndBool) {
  EXPECT_THAT(cast_to<float>(Array::from<int32_t>({2}, {-3, 7})), ElementsAre(-3, 7));
  EXPECT_THAT(cast_to<float>(Array::from<uint8_t>({2}, {0, 255})), ElementsAre(0, 255));
  EXPECT_THAT(cast_to<float>(Array::from<bool>({2}, {false, true})), ElementsAre(0, 1));
  EXPECT_THAT(cast_to<int64_t>(Array::from<bool>({2}, {false, true})), ElementsAre(0, 1));
  EXPECT_THAT(cast_to<int64_t>(Array::from<int32_t>({2}, {-3, 7})), ElementsAre(-3, 7));
  EXPECT_THAT(cast_to<int32_t>(Array::from<int64_t>({2}, {-3, (int64_t{1} << 32) + 5})), ElementsAre(-3, 5));
  EXPECT_THAT(cast_to<bool>(Array::from<int64_t>({2}, {int64_t{1} << 40, 0})), ElementsAre(true, false));
}

TEST(Cast, ToItsOwnDtypeIsTheTensorItself) {
  Graph graph;
  const Tensor x = graph.input(0, {DType::kFloat32, {2}}, SourceLocation::current());
  EXPECT_EQ(cast(x, DType::kFloat32), x);
}

// What a chain of casts loses must be lost when the chain is fused, too.
TEST(Cast, InTheMiddleOfAChain) {
  const Array x = Array::from<float>({3}, {0, 2.7f, -0.5f});
  const Array through_bool = test::evaluate_op(
      [](std::span<const Tensor> in) { return cast(cast(in[0], DType::kBool), DType::kFloat32) * 3; }, {x});
  EXPECT_THAT(through_bool.values<float>(), ElementsAre(0, 3, 3));
  const Array through_int = test::evaluate_op(
      [](std::span<const Tensor> in) { return cast(cast(in[0] * 2, DType::kInt32), DType::kFloat32) + 0.5f; },
      {x});
  EXPECT_THAT(through_int.values<float>(), ElementsAre(0.5f, 5.5f, -0.5f));
  const Array pixels =
      test::evaluate_op([](std::span<const Tensor> in) { return cast(in[0], DType::kFloat32) / 255 - 0.5f; },
                        {Array::from<uint8_t>({2}, {0, 255})});
  EXPECT_THAT(pixels.values<float>(), ElementsAre(-0.5f, 0.5f));
}

// Of a value that lies in the plan's own memory and is read no more the result takes the place.
TEST(Cast, OfAValueInWhosePlaceItGoes) {
  Array identity(DType::kFloat32, {16, 16});
  for (int64_t i = 0; i < 16; ++i) identity.values<float>()[17 * i] = 1;
  Array x(DType::kFloat32, {4, 16});
  for (int64_t i = 0; i < x.elements(); ++i) x.values<float>()[i] = 0.75f * static_cast<float>(i) - 20;
  const Array y = test::evaluate_op(
      [](std::span<const Tensor> in) {
        return slice(cast(matmul(in[0], in[1]), DType::kInt32), {1, 0}, {2, 16});
      },
      {x, identity});
  for (int64_t i = 0; i < y.elements(); ++i)
    ASSERT_EQ(y.values<int32_t>()[i], static_cast<int32_t>(x.values<float>()[16 + i])) << i;
}

TEST(Cast, NoGradientPassesIntegers) {
  // Beside the integers runs a path that the gradient takes: the derivative is 1, not 2.
  const test::Build build = [](std::span<const Tensor> in) {
    return in[0] + cast(cast(in[0], DType::kInt32), DType::kFloat32);
  };
  test::check_gradients(build, {Array::from<float>({2}, {0.5f, 1.5f})});
}

}  // namespace
}  // namespace mox
