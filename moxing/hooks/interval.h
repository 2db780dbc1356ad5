// How often something is done in a training: in steps, in seconds, or in passes over the training data.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "moxing/hooks/hook.h"

namespace mox {

// Each is off at 0. With several of them it is done whenever one of them says so.
struct Interval {
  int64_t steps = 0;   // at global steps that are multiples of it
  double seconds = 0;  // so long after it was last done
  int64_t epochs = 0;  // with the step in which such a number of passes over the training data ends

  bool any() const { return steps > 0 || seconds > 0 || epochs > 0; }
};

class IntervalClock {
 public:
  // `what` names the thing in messages ("evaluation"). `together`: all ranks of the job ask, and get rank 0's
  // answer where the clock decides, which costs a message a step then. Throws InvalidArgument for a negative
  // or non-finite interval.
  IntervalClock(const Interval& interval, std::string what, bool together = false);

  // When a run begins: seconds count from now. Throws FailedPrecondition for an interval in epochs where the
  // size of an epoch is not known.
  void start(const Session& session);

  // Whether it is due after the step just done. Ask once a step, in after_run.
  bool is_due(const Session& session);

  // It has just been done for another reason: seconds count from now.
  void done() { last_ = Clock::now(); }

  const Interval& interval() const { return interval_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool time_is_up() const;

  Interval interval_;
  std::string what_;
  bool together_;
  Clock::time_point last_ = Clock::now();
};

// Of so many passes over the training data (Session::passes), those that are completed.
int64_t completed_epochs(double passes);
// The passes that `steps` steps have completed; steps_per_epoch > 0.
int64_t completed_epochs(int64_t steps, double steps_per_epoch);

}  // namespace mox
