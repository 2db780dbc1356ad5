// The choice of a number of threads, by what it would be told.
#include "runtime/data/internal/thread_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace mox::data::internal {
namespace {

using testing::HasSubstr;

// Settles on a machine where data of `data_seconds` a batch are prepared by any number of threads, while the
// consumer computes for `compute_seconds`, and each thread more than the cores slows all down.
int settled_on(int most, double data_seconds, double compute_seconds, double slowdown_of_a_thread = 0) {
  ThreadTuner tuner(most);
  while (!tuner.settled()) {
    const double compute = compute_seconds * (1 + slowdown_of_a_thread * (tuner.threads() - 1));
    const double batch = std::max(data_seconds / tuner.threads(), compute);
    tuner.observe(batch, (batch - compute) / batch);
    EXPECT_LE(tuner.threads(), most);
  }
  return tuner.threads();
}

TEST(ThreadTuner, TakesAsFewAsKeepTheConsumerFed) {
  EXPECT_EQ(settled_on(8, 0.01, 0.02), 1);
  EXPECT_EQ(settled_on(8, 0.03, 0.02), 2);
  EXPECT_EQ(settled_on(8, 0.07, 0.02), 4);
}

TEST(ThreadTuner, StaysWithinTheBudget) {
  EXPECT_EQ(settled_on(1, 0.5, 0.01), 1);
  EXPECT_EQ(settled_on(2, 0.5, 0.01), 2);
  EXPECT_EQ(settled_on(6, 0.5, 0.01), 6);
}

TEST(ThreadTuner, GivesBackThreadsThatDoNotHelp) {
  // The consumer loses by a second thread what it gains.
  EXPECT_EQ(settled_on(8, 0.022, 0.02, 0.1), 1);
  // Data that come no faster: a disk at its limit.
  ThreadTuner tuner(8);
  EXPECT_TRUE(tuner.observe(0.1, 0.5));
  EXPECT_EQ(tuner.threads(), 2);
  EXPECT_TRUE(tuner.observe(0.1, 0.5));
  EXPECT_EQ(tuner.threads(), 1);
  EXPECT_TRUE(tuner.settled());
  EXPECT_THAT(tuner.history(),
              HasSubstr("waited 50 % of 100 ms a batch with 1, 50 % of 100 ms a batch with 2"));
}

}  // namespace
}  // namespace mox::data::internal
