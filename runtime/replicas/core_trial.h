// On how many cores the threads of a team are best kept while other work has the same cores: on all, or on
// one.
//
// A team on several contended cores goes on when the last of its threads has had its turn, so it gets less
// than one thread alone would. On one core its threads take turns there with the same share of it, and none
// waits for another core: two threads on two cores beside two endless loops train resnet_v1_20 with 11 steps
// a second, kept on one of them with 17, as one thread does. Where other work has few of many cores, one core
// is far worse. So it is measured: steps on all, then on one, again after a while that doubles for as long as
// the answer stays.
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

 private:
  enum class Phase { kIdle, kAll, kOne, kKept };

  void begin(Phase phase, Clock::time_point now);
  void decide(Clock::duration on_one, Clock::time_point now);

  Phase phase_ = Phase::kIdle;
  bool one_is_faster_ = false;
  Clock::time_point trial_since_{};
  Clock::time_point since_{};  // the beginning of the phase; of its second step where it measures
  int steps_ = -1;             // since then; the first still finds its threads elsewhere
  Clock::duration kept_for_{};
  Clock::duration on_all_{};  // the mean step
};

}  // namespace mox::internal
