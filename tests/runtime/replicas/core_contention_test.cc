#include "runtime/replicas/core_contention.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace mox::internal {
namespace {

using std::chrono::seconds;
const CoreContention::Clock::time_point kBegin{seconds(1000)};

TEST(CoreContention, IsNoticedByTheSwitchesOfAPeriodAndSaidOnce) {
  CoreContention contention;
  contention.look(kBegin, 5000);  // what a thread has behind it does not count
  EXPECT_FALSE(contention.is_noticed());
  contention.look(kBegin + seconds(1), 5005);
  EXPECT_FALSE(contention.is_noticed());
  contention.look(kBegin + seconds(2), 5205);
  EXPECT_TRUE(contention.is_noticed());
}

TEST(CoreContention, EndsAfterTwentyQuietPeriodsOneAfterTheOther) {
  CoreContention contention;
  contention.look(kBegin, 0);
  contention.look(kBegin + seconds(1), 100);
  ASSERT_TRUE(contention.is_noticed());
  int64_t switches = 100;
  int second = 1;
  for (int i = 0; i < 19; ++i) contention.look(kBegin + seconds(++second), ++switches);
  EXPECT_TRUE(contention.is_noticed());
  contention.look(kBegin + seconds(++second), switches += 50);  // not quiet: counted from the beginning
  for (int i = 0; i < 19; ++i) contention.look(kBegin + seconds(++second), ++switches);
  EXPECT_TRUE(contention.is_noticed());
  contention.look(kBegin + seconds(++second), ++switches);
  EXPECT_FALSE(contention.is_noticed());
  contention.look(kBegin + seconds(++second), switches + 100);
  EXPECT_TRUE(contention.is_noticed());
}

TEST(CoreContention, LooksAtNothingBeforeAPeriodHasPassed) {
  CoreContention contention;
  contention.look(kBegin, 0);
  contention.look(kBegin + std::chrono::milliseconds(10), 1000);
  EXPECT_FALSE(contention.is_noticed());
}

}  // namespace
}  // namespace mox::internal
