#include "runtime/replicas/sleeping_teams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#include "runtime/base/resource_limits.h"
#include "runtime/base/team.h"

namespace mox {
namespace {

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of the processor's time, what the calling thread uses up while it waits for the other one of a team, which
// sleeps: the least of five.
double seconds_of_waiting() {
  double least = 1;
  for (int i = 0; i < 5; ++i) {
    const std::thread::id caller = std::this_thread::get_id();
    const double before = processor_seconds();
    Team(2).on_each_thread([&] {
      if (std::this_thread::get_id() != caller) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    });
    least = std::min(least, processor_seconds() - before);
  }
  return least;
}

TEST(SleepingTeams, WaitForLessThanATenthOfTheTimeWhileOneLives) {
  if (available_cores() < 2) GTEST_SKIP() << "needs 2 cores: on one, teams always wait asleep";
  const double spinning = seconds_of_waiting();
  double asleep = 0;
  {
    const SleepingTeams teams;
    if (!teams.is_active())
      GTEST_SKIP() << "needs OMP_WAIT_POLICY and GOMP_SPINCOUNT unset: they say how teams wait";
    asleep = seconds_of_waiting();
  }
  EXPECT_LT(asleep, spinning / 10);
  EXPECT_GT(seconds_of_waiting(), asleep * 3) << "teams go on as before when it has ended";
}

TEST(SleepingTeams, ComputeAsOthersDo) {
  const SleepingTeams teams;
  std::vector<int> visits(1000);
  Team(3).parallel_for(1000, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++visits[i];
  });
  EXPECT_TRUE(std::ranges::all_of(visits, [](int n) { return n == 1; }));
}

TEST(SleepingTeams, LeaveAloneWhatTheUserHasSaid) {
  ASSERT_EQ(::setenv("GOMP_SPINCOUNT", "1000", 0), 0);
  EXPECT_FALSE(SleepingTeams().is_active());
  ASSERT_EQ(::unsetenv("GOMP_SPINCOUNT"), 0);
}

}  // namespace
}  // namespace mox
