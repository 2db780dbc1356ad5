// On how many cores the threads of a team are best kept while other work has the same cores: on all,
// or on one.
//
// A team on several contended cores goes on when the last of its threads has had its turn, so it gets less
// than one thread alone would. On one core its threads take turns there with the same share of it, and none
// waits for another core. Where other work has few of many cores, one core is far worse. So it is measured:
// steps on all, then on one, again after a while that doubles for as long as the answer stays.
//
// Which cores a thread has changes no bit of what it computes.
//
// Threads: of one thread.
#pragma once

#include <chrono>

namespace mox::internal {

class CoreTrial {
 public:
  using Clock = std::chrono::steady_clock;

  // At the beginning of each step; whether it is to run on one core. `is_contended`: whether other work has
  // been seen on the cores; without, always false.
  bool takes_one_core(Clock::time_point now, bool is_contended);
  // At its end: how long it took. What lies between two steps, such as a checkpoint, does not count.
  void note_step(Clock::duration step);

 private:
  enum class Phase { kIdle, kAll, kOne, kKept };

  void begin(Phase phase);
  void decide(Clock::duration on_one, Clock::time_point now);

  Phase phase_ = Phase::kIdle;
  bool one_is_faster_ = false;
  // Of a phase that measures; its first step, which still finds its threads elsewhere, left out.
  int steps_ = -1;
  Clock::duration measured_{};
  Clock::duration trial_{};   // all steps of both phases
  Clock::duration on_all_{};  // the mean step
  Clock::time_point kept_since_{};
  Clock::duration kept_for_{};
};

}  // namespace mox::internal
