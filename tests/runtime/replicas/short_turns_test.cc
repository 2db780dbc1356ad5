#include "runtime/replicas/short_turns.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/replicas/lane_threads.h"

namespace mox::internal {
namespace {

using std::chrono::nanoseconds;

// Whether this system hears of turns: Linux from 6.12 on.
bool hears_of_turns() {
  utsname system{};
  int major = 0, minor = 0;
  return ::uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 12));
}

void in_a_thread(const std::function<void()>& body) { std::thread(body).join(); }

TEST(ShortTurns, AreTakenAndGivenBackWithoutAnotherShare) {
  in_a_thread([] {
    ::setpriority(PRIO_PROCESS, 0, 3);  // of this thread alone
    const nanoseconds usual = length_of_turns();
    take_short_turns();
    EXPECT_EQ(length_of_turns(), hears_of_turns() ? nanoseconds(100'000) : usual);
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), 3);
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
    take_usual_turns();
    EXPECT_EQ(length_of_turns(), usual);
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), 3);
  });
}

TEST(ShortTurns, LeaveAnotherClassAlone) {
  in_a_thread([] {
    const sched_param none{};
    ASSERT_EQ(::sched_setscheduler(0, SCHED_IDLE, &none), 0);
    const nanoseconds usual = length_of_turns();
    take_short_turns();
    EXPECT_EQ(::sched_getscheduler(0), SCHED_IDLE);
    EXPECT_EQ(length_of_turns(), usual);
  });
}

// The turns of all threads of all lanes.
std::vector<nanoseconds> turns_of(LaneThreads& lanes, const Team& team) {
  std::mutex mutex;
  std::vector<nanoseconds> found;
  lanes.run([&](int) {
    team.on_each_thread([&] {
      const nanoseconds turns = length_of_turns();
      const std::lock_guard lock(mutex);
      found.push_back(turns);
    });
  });
  return found;
}

TEST(ShortTurns, AreThoseOfLanesAndTeamsWhileTheyLive) {
  in_a_thread([] {
    const nanoseconds usual = length_of_turns(), expected = hears_of_turns() ? nanoseconds(100'000) : usual;
    const Team two(2), one(1);
    two.enter();
    {
      LaneThreads lanes(1, two);
      EXPECT_EQ(turns_of(lanes, two), std::vector(2, expected));
      { const LaneThreads evaluation(1, two); }
      EXPECT_EQ(turns_of(lanes, two), std::vector(2, expected));
    }
    EXPECT_EQ(length_of_turns(), usual);
    one.enter();
    {
      LaneThreads lanes(2, one);
      EXPECT_EQ(turns_of(lanes, one), std::vector(2, expected));
    }
    EXPECT_EQ(length_of_turns(), usual);
    {
      LaneThreads alone(1, one);
      EXPECT_EQ(turns_of(alone, one), std::vector(1, usual));
    }
  });
}

}  // namespace
}  // namespace mox::internal
