// Notices that other work uses the cores of the lanes, says so once, and has teams wait asleep meanwhile
// (runtime/replicas/sleeping_teams.h).
//
// The sign is how often the system puts the computing thread aside although it could go on (involuntary
// context switches): 0 to 10 times a second on cores of its own, some hundred with a busy loop beside it.
//
// Threads: look() is for the thread of lane 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "runtime/replicas/sleeping_teams.h"

namespace mox::internal {

class CoreContention {
 public:
  using Clock = std::chrono::steady_clock;

  // Once a step; costs two clock readings but where a period ends.
  void look();
  // look() with the two things that it reads, for tests: the moment, and the thread's involuntary switches
  // until then.
  void look(Clock::time_point now, int64_t switches);

  bool is_noticed() const { return teams_.has_value(); }

 private:
  std::optional<Clock::time_point> since_;  // the beginning of the period
  int64_t switches_ = 0;                    // until then
  int quiet_periods_ = 0;                   // one after the other, while noticed
  bool is_said_ = false;
  std::optional<SleepingTeams> teams_;
};

}  // namespace mox::internal
