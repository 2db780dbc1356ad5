#include "runtime/comm/internal/giving_way.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/runtime/comm/thread_ranks.h"

namespace mox {
namespace {

using internal::GivingWay;
using namespace std::chrono_literals;

const GivingWay::Clock::time_point kBegin{1000s};

// A yield at `at` in which another thread had the core for 3 ms; when it was over.
GivingWay::Clock::time_point yield_in_vain(GivingWay* way, GivingWay::Clock::time_point at) {
  way->yielded(at, at + 3ms);
  return at + 3ms;
}

// For how long waits have slept from `now` on, to the millisecond.
std::chrono::milliseconds slept_from(const GivingWay& way, GivingWay::Clock::time_point now) {
  auto slept = 0ms;
  while (way.sleeps(now + slept)) slept += 1ms;
  return slept;
}

TEST(GivingWay, YieldsOnACoreOfItsOwn) {
  GivingWay way;
  EXPECT_FALSE(way.sleeps(kBegin));
  for (int i = 0; i < 1000; ++i) way.yielded(kBegin + i * 100us, kBegin + i * 100us + (i % 2 ? 1us : 90us));
  EXPECT_FALSE(way.sleeps(kBegin + 100ms));
}

TEST(GivingWay, SleepsTwiceAsLongAfterEachYieldInVain) {
  GivingWay way;
  auto now = kBegin;
  for (const auto expected : {10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms}) {
    now = yield_in_vain(&way, now);
    EXPECT_EQ(slept_from(way, now), expected);
    now += expected;
    way.yielded(now, now + 1us);  // between two slices of the others: no sign that they are gone
    now += 1us;
  }
}

TEST(GivingWay, BeginsAnewWhereTheCoreWasItsOwnForAWhile) {
  GivingWay way;
  auto now = kBegin;
  for (int i = 0; i < 10; ++i) {
    now = yield_in_vain(&way, now);
    now += slept_from(way, now);
  }
  now = yield_in_vain(&way, now + 501ms);
  EXPECT_EQ(slept_from(way, now), 10ms);
}

TEST(GivingWay, SleepsLongerTheLongerItHasWaited) {
  EXPECT_EQ(GivingWay::sleep_after(0s), 20us);
  EXPECT_EQ(GivingWay::sleep_after(800us), 100us);
  EXPECT_EQ(GivingWay::sleep_after(1s), 400us);
}

void stay_on_core(int core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof only, &only), 0);
}

int first_core() {
  cpu_set_t allowed;
  if (pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed) != 0) return 0;
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  return core;
}

// How often the calling thread went to sleep.
int64_t sleeps_of_thread() {
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

// Rank 1 is late until rank 0, whose core another thread keeps busy, sleeps between its looks; a thread that
// yields does not sleep.
TEST(Communicator, AWaitOnACoreThatOthersUseSleeps) {
  constexpr int kSleeps = 100;
  constexpr double kLongestWait = 20;
  const int core = first_core();
  std::atomic<bool> is_over{false}, has_slept{false};
  std::thread busy([&] {
    stay_on_core(core);
    while (!is_over.load(std::memory_order_relaxed)) {
    }
  });
  run_ranks(2, [&](Communicator& communicator) {
    if (communicator.rank() == 0) {
      stay_on_core(core);
      const int64_t before = sleeps_of_thread();
      communicator.set_stall_listener(
          [&, before](const std::string& what, std::span<const int>, double seconds) {
            if (what != "allgather") return;
            has_slept = sleeps_of_thread() - before >= kSleeps;
            if (has_slept || seconds > kLongestWait) is_over = true;
          });
    }
    while (communicator.rank() == 1 && !is_over) std::this_thread::sleep_for(1ms);
    communicator.allgather_equal("x");
    communicator.set_stall_listener({});
  });
  busy.join();
  EXPECT_TRUE(has_slept);
}

}  // namespace
}  // namespace mox
