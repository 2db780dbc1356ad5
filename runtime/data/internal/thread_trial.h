// Measures what ThreadTuner asks for: how a pipeline does with a number of threads, by so many batches over
// so much time, after some that are still made with the number before.
//
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/base/seconds.h"
#include "runtime/data/internal/thread_tuner.h"

namespace mox::data::internal {

class ThreadTrial {
 public:
  explicit ThreadTrial(int most) : tuner_(most) {}

  const ThreadTuner& tuner() const { return tuner_; }

  // After each batch, until the tuner is settled; `wait_seconds` is for how long the consumer has waited in
  // all. Returns whether the tuner wants another number of threads.
  bool delivered(double wait_seconds) {
    using Clock = std::chrono::steady_clock;
    if (++batches_ <= kUnjudgedBatches) {
      since_ = Clock::now();
      waited_before_ = wait_seconds;
      return false;
    }
    const int64_t judged = batches_ - kUnjudgedBatches;
    const double seconds = seconds_since(since_);
    if (judged < kJudgedBatches || seconds < kJudgedSeconds) return false;
    batches_ = 0;
    return tuner_.observe(seconds / static_cast<double>(judged), (wait_seconds - waited_before_) / seconds);
  }

 private:
  static constexpr int64_t kJudgedBatches = 8, kUnjudgedBatches = 3;
  static constexpr double kJudgedSeconds = 0.5;

  ThreadTuner tuner_;
  int64_t batches_ = 0;
  double waited_before_ = 0;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace mox::data::internal
