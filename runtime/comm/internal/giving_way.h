// How a thread that waits for other ranks gives way between two looks: it yields where that costs nothing,
// else it sleeps.
//
// On a core of its own a yield returns at once, and no message is met later than it comes. Where other work
// has the core as well, a yield gives it away until that work has used up its time slice, and on Linux from
// 6.6 on counts as if the thread had used up its own: two ranks that hand each other a message again and
// again get next to nothing of a core of which they may have half (docs/design_notes.md). A thread that
// sleeps keeps its share, and with it the right to go on once it wakes.
//
// So a yield that took long, in which another thread ran, has all waits of the process sleep for a while.
// Then a yield is tried again, after twice the time whenever it was in vain.
//
// Threads: all functions from any thread.
#pragma once

#include <atomic>
#include <chrono>

namespace mox::internal {

class GivingWay {
 public:
  using Clock = std::chrono::steady_clock;

  // Between two looks in vain; what is looked for moved last, or the wait began, at `since`.
  void between_looks(Clock::time_point since);

  // What between_looks goes by, for tests too: whether a wait at `now` sleeps, and a yield that has been.
  bool sleeps(Clock::time_point now) const;
  void yielded(Clock::time_point before, Clock::time_point after);
  // The longer a wait, the less a message that is met late adds to it.
  static Clock::duration sleep_after(Clock::duration waited);

 private:
  // Advice alone, which orders no other memory: of two threads that write at a time, either may be heard.
  std::atomic<Clock::rep> sleeping_until_ = 0, period_ = 0;
};

}  // namespace mox::internal
