// Notices that other work uses the cores of the lanes, says so once, and has teams wait
// asleep meanwhile (runtime/replicas/sleeping_teams.h).
//
// The sign is how often the system puts one of the computing threads aside although it could go on
// (involuntary context switches): 0 to 10 times a second on cores of its own, some hundred with a busy loop
// beside it. That of the worst thread counts: all others wait for it.
//
// Threads: one, that of lane 0, but for own_switches().
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "runtime/replicas/sleeping_teams.h"

namespace mox::internal {

// How often the system has put a thread aside since it began.
struct ThreadSwitches {
  int64_t thread = 0;  // its number in the system
  int64_t switches = 0;
};
// Of the calling thread.
ThreadSwitches own_switches();

class CoreContention {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether a period has passed, so that look() would see something new.
  bool is_due(Clock::time_point now) const;
  // `all`: of each computing thread. One that was not there before counts from the next time on.
  void look(Clock::time_point now, std::span<const ThreadSwitches> all);

  bool is_noticed() const { return teams_.has_value(); }

 private:
  std::optional<Clock::time_point> since_;  // the beginning of the period
  std::map<int64_t, int64_t> switches_;     // until then, by thread
  int quiet_periods_ = 0;                   // one after the other, while noticed
  bool is_said_ = false;
  std::optional<SleepingTeams> teams_;
};

}  // namespace mox::internal
