// Teams that wait asleep, for cores that other work uses too.
//
// A thread of a team that waits for the others first looks again and again (libgomp: for some milliseconds),
// since on cores of its own that is the shortest wait. Where another program has one of the cores, the
// thread that is waited for does not run, and the one that looks uses up its own share of the time: two
// threads on two cores beside two busy loops train a cifarnet at a sixth of the speed of one thread, and
// faster than one thread if they sleep when they wait.
//
// libgomp looks only for a moment, then sleeps, when it manages more threads than the process has cores; it
// counts them at each wait. So this holds threads of a pool of its own that do nothing, and with them changes
// how every team of the process waits, oneDNN's calls included, without a second pool that computes. What
// libgomp's own variables say (OMP_WAIT_POLICY, GOMP_SPINCOUNT) stays as the user has set it: then this does
// nothing. No result depends on it.
//
// Threads: made and ended by any thread; several may live at a time.
#pragma once

#include <memory>

namespace mox {

class SleepingTeams {
 public:
  // Does nothing (is_active() is false) where the system refuses so many threads, or the user has said
  // how to wait.
  SleepingTeams();
  ~SleepingTeams();
  SleepingTeams(const SleepingTeams&) = delete;
  SleepingTeams& operator=(const SleepingTeams&) = delete;

  bool is_active() const { return pool_ != nullptr; }

 private:
  class IdlePool;
  std::unique_ptr<IdlePool> pool_;
};

}  // namespace mox
