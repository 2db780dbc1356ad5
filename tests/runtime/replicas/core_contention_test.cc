#include "runtime/replicas/core_contention.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace mox::internal {
namespace {

using std::chrono::seconds;
const CoreContention::Clock::time_point kBegin{seconds(1000)};

void look(CoreContention& contention, CoreContention::Clock::time_point now, int64_t switches) {
  contention.look(now, std::vector<ThreadSwitches>{{.thread = 7, .switches = switches}});
}

TEST(CoreContention, IsNoticedByTheSwitchesOfAPeriodAndSaidOnce) {
  CoreContention contention;
  look(contention, kBegin, 5000);  // what a thread has behind it does not count
  EXPECT_FALSE(contention.is_noticed());
  look(contention, kBegin + seconds(1), 5005);
  EXPECT_FALSE(contention.is_noticed());
  look(contention, kBegin + seconds(2), 5205);
  EXPECT_TRUE(contention.is_noticed());
}

TEST(CoreContention, EndsAfterTwentyQuietPeriodsOneAfterTheOther) {
  CoreContention contention;
  look(contention, kBegin, 0);
  look(contention, kBegin + seconds(1), 100);
  ASSERT_TRUE(contention.is_noticed());
  int64_t switches = 100;
  int second = 1;
  for (int i = 0; i < 19; ++i) look(contention, kBegin + seconds(++second), ++switches);
  EXPECT_TRUE(contention.is_noticed());
  look(contention, kBegin + seconds(++second), switches += 50);  // not quiet: counted from the beginning
  for (int i = 0; i < 19; ++i) look(contention, kBegin + seconds(++second), ++switches);
  EXPECT_TRUE(contention.is_noticed());
  look(contention, kBegin + seconds(++second), ++switches);
  EXPECT_FALSE(contention.is_noticed());
  look(contention, kBegin + seconds(++second), switches + 100);
  EXPECT_TRUE(contention.is_noticed());
}

TEST(CoreContention, IsThatOfTheWorstThread) {
  CoreContention contention;
  using All = std::vector<ThreadSwitches>;
  contention.look(kBegin, All{{1, 100}, {2, 9000}});
  contention.look(kBegin + seconds(1), All{{2, 9005}, {1, 105}});
  EXPECT_FALSE(contention.is_noticed()) << "each counts from its own";
  contention.look(kBegin + seconds(2), All{{1, 110}, {3, 5000}, {2, 9010}});
  EXPECT_FALSE(contention.is_noticed()) << "a new one's past does not count";
  contention.look(kBegin + seconds(3), All{{1, 115}, {3, 5100}, {2, 9015}});
  EXPECT_TRUE(contention.is_noticed());
}

TEST(CoreContention, ThreadsTellTheirOwnSwitches) {
  const ThreadSwitches first = own_switches();
  ThreadSwitches second;
  std::thread([&] { second = own_switches(); }).join();
  EXPECT_NE(first.thread, second.thread);
  EXPECT_GE(own_switches().switches, first.switches);
  EXPECT_EQ(own_switches().thread, first.thread);
}

TEST(CoreContention, LooksAtNothingBeforeAPeriodHasPassed) {
  CoreContention contention;
  look(contention, kBegin, 0);
  look(contention, kBegin + std::chrono::milliseconds(10), 1000);
  EXPECT_FALSE(contention.is_noticed());
}

}  // namespace
}  // namespace mox::internal
