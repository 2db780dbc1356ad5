// random_normal, random_uniform and random_truncated_normal.
#include "runtime/base/random.h"

#include <gmock/gmock-more-matchers.h>

#include <cmath>
#include <limits>

#include "ops/random/random.h"
#include "tests/ops/run_op.h"

namespace mox::test {
namespace {

using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

struct Moments {
  double mean = 0, stddev = 0, low = INFINITY, high = -INFINITY;
};
Moments moments_of(const Array& array) {
  Moments result;
  double squares = 0;
  for (float value : array.values<float>()) {
    result.mean += value;
    squares += static_cast<double>(value) * value;
    result.low = std::fmin(result.low, value);
    result.high = std::fmax(result.high, value);
  }
  const auto count = static_cast<double>(array.elements());
  result.mean /= count;
  result.stddev = std::sqrt(squares / count - result.mean * result.mean);
  return result;
}

// 100,000 values: a mean is off by more than 5 / sqrt(100,000) standard deviations about once in two million
// tries.
constexpr double kTolerance = 0.016;

TEST(RandomNormal, HasItsMoments) {
  const Array y = run_op([](Tensors) { return random_normal({100, 1000}, {.mean = 2, .stddev = 3}); }, {});
  const Moments moments = moments_of(y);
  EXPECT_NEAR(moments.mean, 2, 3 * kTolerance);
  EXPECT_NEAR(moments.stddev, 3, 3 * kTolerance);
  EXPECT_GT(moments.high, 2 + 3 * 3.5);
}

TEST(RandomUniform, FillsItsRange) {
  const Moments moments =
      moments_of(run_op([](Tensors) { return random_uniform({100000}, {.low = -1, .high = 3}); }, {}));
  EXPECT_NEAR(moments.mean, 1, 4 * kTolerance);
  EXPECT_NEAR(moments.stddev, 4 / std::sqrt(12.0), 4 * kTolerance);
  EXPECT_GE(moments.low, -1);
  EXPECT_LT(moments.high, 3);
  EXPECT_NEAR(moments.low, -1, 1e-3);
  EXPECT_NEAR(moments.high, 3, 1e-3);
}

TEST(RandomTruncatedNormal, StaysWithinTwoDeviations) {
  const Moments moments = moments_of(
      run_op([](Tensors) { return random_truncated_normal({100000}, {.mean = 1, .stddev = 2}); }, {}));
  EXPECT_NEAR(moments.mean, 1, 2 * kTolerance);
  EXPECT_NEAR(moments.stddev, 0.8796 * 2, 2 * kTolerance);
  EXPECT_GE(moments.low, 1 - 4);
  EXPECT_LE(moments.high, 1 + 4);
}

TEST(Random, IsAFunctionOfSeedNodeAndStep) {
  const auto draw = [](uint64_t seed, int64_t step) {
    return run_ops(
        [](Tensors) {
          return std::vector{random_uniform({5}), random_uniform({5})};
        },
        {}, {.seed = seed, .step = step});
  };
  const auto first = draw(1, 10);
  EXPECT_EQ(values_of<float>(first[0]), values_of<float>(draw(1, 10)[0]));
  EXPECT_NE(values_of<float>(first[0]), values_of<float>(first[1]));
  EXPECT_NE(values_of<float>(first[0]), values_of<float>(draw(2, 10)[0]));
  EXPECT_NE(values_of<float>(first[0]), values_of<float>(draw(1, 11)[0]));
  std::vector<float> expected(5);
  RandomStream(1, mix_hash(stable_hash("random_uniform"), 10)).fill_uniform(expected, 0, 0, 1);
  EXPECT_EQ(values_of<float>(first[0]), expected);
}

TEST(Random, TakesEmptyShapesAndScalars) {
  EXPECT_EQ(run_op([](Tensors) { return random_normal({0, 3}); }, {}).shape(), (Shape{0, 3}));
  EXPECT_EQ(run_op([](Tensors) { return random_uniform({}); }, {}).shape(), Shape{});
}

TEST(Random, RefusesWrongOptions) {
  const auto error = [](const std::function<Tensor()>& build) {
    return build_error([&](Tensors) { return std::vector{build()}; }, {});
  };
  EXPECT_THAT(error([] { return random_normal({2}, {.stddev = -1}); }), HasSubstr("a finite stddev >= 0"));
  EXPECT_THAT(error([] { return random_normal({2}, {.stddev = 1e39}); }), HasSubstr("a finite stddev"));
  EXPECT_THAT(error([] { return random_normal({2}, {.mean = -1e39}); }), HasSubstr("a finite mean"));
  EXPECT_THAT(error([] { return random_truncated_normal({2}, {.mean = std::nan("")}); }),
              HasSubstr("a finite mean"));
  EXPECT_THAT(error([] { return random_uniform({2}, {.low = 1, .high = 1}); }),
              HasSubstr("finite low < high"));
  EXPECT_THAT(error([] { return random_uniform({2}, {.low = -3e38, .high = 3e38}); }),
              HasSubstr("finite low < high"));
  EXPECT_THAT(error([] { return random_uniform({-2}); }), HasSubstr("extents >= 0"));
  EXPECT_THROW(random_normal({2}), FailedPrecondition);
}

}  // namespace
}  // namespace mox::test
