#include "moxing/optimizers/gradient_clipping.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "moxing/optimizers/optimizer_wrapper.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace mox {
namespace {

TEST(GlobalNorm, IsTheRootOfTheSumOfSquares) {
  const std::vector<float> a = {3, 0, -4}, b = {12};
  const std::vector<double> sums = {sum_of_squares(a, Team(1)), sum_of_squares(b, Team(1))};
  EXPECT_EQ(sums[0], 25);
  EXPECT_EQ(global_norm(sums), 13);
  EXPECT_EQ(global_norm({}), 0);
  EXPECT_EQ(sum_of_squares({}, Team(2)), 0);
}

TEST(GlobalNorm, IsBitwiseIndependentOfTheTeamAndAccurateForEverySize) {
  // Around the borders of a chunk, of all chunks together, and of the lanes.
  for (size_t size : {1u, 15u, 16u, 17u, 8191u, 8192u, 8193u, 100003u, 8192u * 1024u, 8192u * 1024u + 5u}) {
    std::vector<float> values(size);
    RandomStream(3, size).fill_uniform(values, 0, -1, 1);
    long double expected = 0;
    for (float value : values) expected += static_cast<long double>(value) * value;
    const double sum = sum_of_squares(values, Team(1));
    EXPECT_NEAR(sum, static_cast<double>(expected), static_cast<double>(expected) * 1e-13) << size;
    for (int threads : {2, 3}) EXPECT_EQ(sum_of_squares(values, Team(threads)), sum) << size;
  }
}

TEST(GlobalNorm, DoesNotOverflowFloat) {
  const std::vector<float> values(4, 1e30f);
  const std::vector<double> sums = {sum_of_squares(values, Team(1))};
  EXPECT_NEAR(global_norm(sums), 2e30, 1e24);
}

TEST(ClippingScale, ShrinksOnlyWhatIsLonger) {
  EXPECT_EQ(clipping_scale(0, 1), 1);
  EXPECT_EQ(clipping_scale(1, 1), 1);
  EXPECT_EQ(clipping_scale(4, 1), 0.25);
  EXPECT_TRUE(std::isnan(clipping_scale(std::numeric_limits<double>::infinity(), 1)));
  EXPECT_TRUE(std::isnan(clipping_scale(std::nan(""), 1)));
}

TEST(OptimizerWrapper, ClipByValueClipsEachElement) {
  const auto clip = get_optimizer_wrapper_fn("clip_by_value", {.limit = 2});
  const auto optimizer = clip(get_optimizer_fn("sgd", {.learning_rate = 1}))();
  std::vector<float> value = {0, 0, 0};
  const std::vector<float> gradient = {1, 5, -5};
  optimizer->apply({.value = value, .gradient = gradient, .learning_rate = 1}, Team(1));
  EXPECT_EQ(value, (std::vector<float>{-1, -2, 2}));
  EXPECT_EQ(optimizer->name(), "sgd");
  EXPECT_THAT(optimizer->description(), ::testing::StartsWith("clip by value 2, sgd"));
  EXPECT_EQ(optimizer->global_norm_limit(), std::nullopt);
}

TEST(OptimizerWrapper, ClipByGlobalNormTellsItsLimit) {
  const auto clip = get_optimizer_wrapper_fn("clip_by_global_norm", {.limit = 5});
  const auto tighter = get_optimizer_wrapper_fn("clip_by_global_norm", {.limit = 3});
  const OptimizerFn adam = get_optimizer_fn("adam");
  EXPECT_EQ(clip(adam)()->global_norm_limit(), 5);
  EXPECT_EQ(clip(tighter(adam))()->global_norm_limit(), 3);
  EXPECT_EQ(tighter(clip(adam))()->global_norm_limit(), 3);
  EXPECT_EQ(clip(adam)()->slots().size(), 2u);
}

TEST(OptimizerWrapper, TheNormIsTakenBeforeTheValuesAreClipped) {
  const auto norm = get_optimizer_wrapper_fn("clip_by_global_norm", {.limit = 5});
  const auto value = get_optimizer_wrapper_fn("clip_by_value", {.limit = 2});
  const OptimizerFn sgd = get_optimizer_fn("sgd");
  EXPECT_EQ(norm(value(sgd))()->global_norm_limit(), 5);
  EXPECT_THROW(value(norm(sgd))(), InvalidArgument);
}

TEST(OptimizerWrapper, WrongUsesAreRefused) {
  EXPECT_THROW(get_optimizer_wrapper_fn("clip_by_value"), InvalidArgument);
  EXPECT_THROW(get_optimizer_wrapper_fn("clip_by_value", {.limit = 0}), InvalidArgument);
  EXPECT_THROW(get_optimizer_wrapper_fn("clip_by_value", {.limit = std::nan("")}), InvalidArgument);
  EXPECT_THROW(get_optimizer_wrapper_fn("clip_by_value", {.limit = 1})(nullptr), InvalidArgument);
  EXPECT_THROW(get_optimizer_wrapper_fn("clip_by_value", {.limit = 1})([] { return nullptr; })(),
               InvalidArgument);
  try {
    get_optimizer_wrapper_fn("clip_by_globl_norm", {.limit = 1});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("did you mean \"clip_by_global_norm\"?"));
  }
}

}  // namespace
}  // namespace mox
