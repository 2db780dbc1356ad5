// The learning rates of MindSpore's ResNet, against the sums and products that their definition says.
#include "models/dim_reduce_resnet/learning_rates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "runtime/base/error.h"

namespace mox {
namespace {

// 10 epochs of 10 steps, two of them to warm up.
double rate(const std::string& decay, int64_t step) {
  return dim_reduce_resnet::learning_rates({.decay = decay,
                                            .initial = 0.01,
                                            .highest = 0.41,
                                            .last = 0.001,
                                            .warm_up_epochs = decay == "steps" ? 0.0 : 2.0,
                                            .epochs = 10})
      .value(step, 10);
}

TEST(DimReduceLearningRates, WarmUpOnAStraightLine) {
  for (const int64_t step : {0, 7, 19}) {
    const auto t = static_cast<double>(step);
    EXPECT_DOUBLE_EQ(rate("poly", step), 0.01 + 0.4 * t / 20);
    EXPECT_DOUBLE_EQ(rate("linear", step), 0.01 + 0.4 * t / 20);
    EXPECT_DOUBLE_EQ(rate("cosine", step), 0.01 + 0.4 * (t + 1) / 20);
  }
}

TEST(DimReduceLearningRates, DecayAsTheirNamesSay) {
  for (const int64_t step : {20, 33, 60, 99}) {
    const double done = (static_cast<double>(step) - 20) / 80;
    EXPECT_DOUBLE_EQ(rate("poly", step), 0.41 * (1 - done) * (1 - done));
    EXPECT_NEAR(rate("linear", step), 0.41 - (0.41 - 0.001) * done, 1e-15);
    EXPECT_NEAR(rate("cosine", step), (0.41 - 0.001) * 0.5 * (1 + std::cos(std::numbers::pi * done)) + 0.001,
                1e-15);
  }
  EXPECT_DOUBLE_EQ(rate("steps", 0), 0.41);
  EXPECT_DOUBLE_EQ(rate("steps", 29), 0.41);
  EXPECT_DOUBLE_EQ(rate("steps", 30), 0.041);
  EXPECT_DOUBLE_EQ(rate("steps", 60), 0.0041);
  EXPECT_DOUBLE_EQ(rate("steps", 80), 0.00041);
}

TEST(DimReduceLearningRates, StayAfterTheLastStep) {
  for (const char* decay : {"steps", "poly", "cosine", "linear"})
    EXPECT_DOUBLE_EQ(rate(decay, 1000), rate(decay, 99)) << decay;
}

TEST(DimReduceLearningRates, RefuseWhatTheyCannotBe) {
  EXPECT_THROW(dim_reduce_resnet::learning_rates({.decay = "exponential"}), InvalidArgument);
  EXPECT_THROW(dim_reduce_resnet::learning_rates({.warm_up_epochs = 90, .epochs = 90}), InvalidArgument);
  EXPECT_THROW(dim_reduce_resnet::learning_rates({.highest = -1}), InvalidArgument);
  EXPECT_THROW(dim_reduce_resnet::learning_rates({.decay = "steps", .warm_up_epochs = 5}), InvalidArgument);
}

}  // namespace
}  // namespace mox
