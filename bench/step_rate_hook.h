// Measures the rate of steps of a training run, warm-up excluded.
#pragma once

#include <chrono>
#include <cstdint>

#include "moxing/hooks/hook.h"
#include "runtime/base/error.h"
#include "runtime/base/seconds.h"

namespace bench {

// Times the steps warm_up_steps + 1 ... warm_up_steps + steps of this start, from the end of the last warm-up
// step to the end of the last timed one, so that everything a user waits for is in it: data,
// plan, update, hooks.
class StepRateHook : public mox::Hook {
 public:
  StepRateHook(int64_t warm_up_steps, int64_t steps) : warm_up_steps_(warm_up_steps), steps_(steps) {}

  void after_run(mox::Session& session, const mox::StepResult&) override {
    const int64_t done = session.global_step() - session.first_step();
    if (done == warm_up_steps_) {
      start_ = Clock::now();
      samples_ = session.samples();
    }
    if (done == warm_up_steps_ + steps_) {
      seconds_ = mox::seconds_since(start_);
      samples_ = session.samples() - samples_;
    }
  }

  // After the run. Throw FailedPrecondition if it ended before the last timed step.
  double steps_per_second() const { return static_cast<double>(steps_) / seconds(); }
  double samples_per_second() const {
    return static_cast<double>(samples_) / seconds();
  }  // of all devices and ranks

 private:
  double seconds() const {
    if (seconds_ == 0)
      throw mox::FailedPrecondition(
          "the run was stopped before its last timed step, so there is no rate; start it again");
    return seconds_;
  }

  using Clock = std::chrono::steady_clock;
  int64_t warm_up_steps_, steps_, samples_ = 0;
  Clock::time_point start_;
  double seconds_ = 0;
};

}  // namespace bench
