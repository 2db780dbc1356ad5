// Comparisons, logic and choice: values, dtypes, gradients.
#include "ops/comparison/comparison.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "ops/arithmetic/arithmetic.h"
#include "runtime/base/error.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

using ::testing::HasSubstr;

TEST(Comparison, OfNumbersAndNaN) {
  const Array a = Array::from<float>({4}, {1, 2, 3, kNaN}), b = Array::from<float>({4}, {2, 2, 2, 2});
  auto values = [&](auto op) {
    const Array y = evaluate_op([&](std::span<const Tensor> in) { return op(in[0], in[1]); }, {a, b});
    return std::vector<bool>(y.values<bool>().begin(), y.values<bool>().end());
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(values([](auto x, auto y) { return greater(x, y); }), ElementsAre(false, false, true, false));
  EXPECT_THAT(values([](auto x, auto y) { return greater_equal(x, y); }),
              ElementsAre(false, true, true, false));
  EXPECT_THAT(values([](auto x, auto y) { return less(x, y); }), ElementsAre(true, false, false, false));
  EXPECT_THAT(values([](auto x, auto y) { return less_equal(x, y); }), ElementsAre(true, true, false, false));
  EXPECT_THAT(values([](auto x, auto y) { return equal(x, y); }), ElementsAre(false, true, false, false));
  EXPECT_THAT(values([](auto x, auto y) { return not_equal(x, y); }), ElementsAre(true, false, true, true));
  EXPECT_THAT(values([](auto x, auto y) { return logical_and(less_equal(x, y), greater_equal(x, y)); }),
              ElementsAre(false, true, false, false));
  EXPECT_THAT(values([](auto x, auto y) { return logical_or(less(x, y), greater(x, y)); }),
              ElementsAre(true, false, true, false));
  EXPECT_THAT(values([](auto x, auto y) { return logical_not(less(x, y)); }),
              ElementsAre(false, true, true, true));
  EXPECT_THAT(values([](auto x, auto) { return equal(x, 3); }), ElementsAre(false, false, true, false));
}

TEST(Comparison, EqualityOfBytesAndBools) {
  const Array a = Array::from<uint8_t>({3}, {1, 200, 255}), b = Array::from<uint8_t>({3}, {1, 201, 255});
  const Array same = evaluate_op([](std::span<const Tensor> in) { return equal(in[0], in[1]); }, {a, b});
  EXPECT_THAT(same.values<bool>(), ::testing::ElementsAre(true, false, true));
  const Array truth = evaluate_op(
      [](std::span<const Tensor> in) { return not_equal(equal(in[0], in[1]), greater(in[2], 0)); },
      {a, b, Array::from<float>({3}, {1, 1, -1})});
  EXPECT_THAT(truth.values<bool>(), ::testing::ElementsAre(false, true, true));
}

TEST(Comparison, SelectTakesGradientOnlyWhereItChose) {
  const Array condition = Array::from<bool>({2, 1}, {true, false});
  Build build = [](std::span<const Tensor> in) { return select(in[0], in[1], in[2]); };
  const Array y = evaluate_op(
      build, {condition, Array::from<float>({2, 2}, {1, 2, 3, 4}), Array::from<float>({2}, {5, 6})});
  EXPECT_THAT(y.values<float>(), ::testing::ElementsAre(1, 2, 5, 6));
  check_gradients(build, {condition, random_array({2, 2}, 11), random_array({2}, 12)});
  // What was not chosen may be NaN.
  const Array safe =
      evaluate_op([](std::span<const Tensor> in) { return select(greater(in[0], 0), log(in[0]), 0); },
                  {Array::from<float>({2}, {1, -1})});
  EXPECT_THAT(safe.values<float>(), ::testing::ElementsAre(0, 0));
  Graph graph;
  const Tensor x = graph.input(0, {DType::kFloat32, {2}}, SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { select(x, x, x); }), HasSubstr("condition of dtype bool"));
}

}  // namespace
}  // namespace mox::test
