// Time in seconds (runtime/base/seconds.h).
#include "runtime/base/seconds.h"

#include <gtest/gtest.h>

namespace mox {
namespace {

using std::chrono::steady_clock;

TEST(Seconds, OfADurationWithItsFraction) {
  EXPECT_EQ(in_seconds(std::chrono::milliseconds(1500)), 1.5);
  EXPECT_EQ(in_seconds(std::chrono::nanoseconds(-250)), -2.5e-7);
}

TEST(Seconds, SinceAMomentGrowWithTheClock) {
  const auto begin = steady_clock::now() - std::chrono::hours(1);
  const double first = seconds_since(begin), second = seconds_since(begin);
  EXPECT_GE(first, 3600);
  EXPECT_GE(second, first);
  EXPECT_LT(second, 7200);
}

}  // namespace
}  // namespace mox
