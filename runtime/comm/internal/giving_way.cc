#include "runtime/comm/internal/giving_way.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace mox::internal {
namespace {

using namespace std::chrono_literals;

// A yield with nobody to yield to takes 1 us, an interrupt in it some 10 us; a time slice is 0.7 ms or more.
constexpr GivingWay::Clock::duration kLongYield = 200us;
// How long waits sleep after the first long yield, and at most after many: a yield in vain, some 3 ms, in
// half a second.
constexpr GivingWay::Clock::duration kShortestPeriod = 10ms, kLongestPeriod = 500ms;
// Of one sleep. What the system adds to it (50 us, the timer slack) is more than the shorter one.
constexpr GivingWay::Clock::duration kShortestSleep = 20us, kLongestSleep = 400us;
constexpr int kShareOfWait = 8;

}  // namespace

void GivingWay::between_looks(Clock::time_point since) {
  const Clock::time_point now = Clock::now();
  if (sleeps(now)) {
    std::this_thread::sleep_for(sleep_after(now - since));
  } else {
    sched_yield();
    yielded(now, Clock::now());
  }
}

bool GivingWay::sleeps(Clock::time_point now) const {
  return now.time_since_epoch().count() < sleeping_until_.load(std::memory_order_relaxed);
}

void GivingWay::yielded(Clock::time_point before, Clock::time_point after) {
  if (after - before < kLongYield) return;
  const Clock::duration last_period(period_.load(std::memory_order_relaxed));
  const Clock::duration last_end(sleeping_until_.load(std::memory_order_relaxed));
  // The core was shared all the time if this yield is among the first after the last period.
  const bool is_shared_still = before.time_since_epoch() - last_end < last_period;
  const Clock::duration period =
      is_shared_still ? std::min(2 * last_period, kLongestPeriod) : kShortestPeriod;
  period_.store(period.count(), std::memory_order_relaxed);
  sleeping_until_.store((after + period).time_since_epoch().count(), std::memory_order_relaxed);
}

GivingWay::Clock::duration GivingWay::sleep_after(Clock::duration waited) {
  return std::clamp(waited / kShareOfWait, kShortestSleep, kLongestSleep);
}

}  // namespace mox::internal
