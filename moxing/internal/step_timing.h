// What a run's steps are made of: computing, and the sending of gradients, of which the backward pass hides a part.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "moxing/internal/gradient_reduction.h"

namespace mox::internal {

class StepTiming {
 public:
  using Clock = std::chrono::steady_clock;

  // One step: all lanes began to compute, all had finished, and every gradient was delivered.
  void add(Clock::time_point begun, Clock::time_point computed, Clock::time_point finished,
           const GradientReduction& gradients);

  // Seconds of all steps together, in which at least one bucket was on its way, and of these those in which nothing was
  // computed any more.
  double sending_seconds() const { return sending_seconds_; }
  double exposed_seconds() const { return exposed_seconds_; }

  // The profile for moxing/forecast.h, in JSON: medians over the steps after the first ones. `samples`: of a step of all ranks;
  // `latency`: seconds of a short message between two of them, 0 if there is one alone.
  // Throws FailedPrecondition if there were too few steps, IoError if it cannot be written.
  void write_profile(const std::string& path, int ranks, int64_t samples, double latency) const;

 private:
  struct Step {
    double compute, whole;
    std::vector<double> ready;  // of each bucket, since the step began
  };

  double sending_seconds_ = 0, exposed_seconds_ = 0;
  std::vector<Step> steps_;  // the latest, in no order
  std::vector<int64_t> bucket_bytes_;
  size_t count_ = 0;
};

}  // namespace mox::internal
