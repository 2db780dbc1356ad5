// What a run's steps are made of: computing, and the sending of gradients, of which the backward pass
// hides a part.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/replicas/gradient_reduction.h"

namespace mox::internal {

class StepTiming {
 public:
  using Clock = std::chrono::steady_clock;

  // `shares_cores`: whether what the communication thread computes is lost to the lanes, which compute
  // on all cores.
  explicit StepTiming(bool shares_cores) : shares_cores_(shares_cores) {}

  struct Moment {
    Clock::time_point time;
    Communicator::Work communication;  // until then
  };
  // One step: all lanes began to compute, all had finished, and every gradient was delivered.
  void add(const Moment& begun, const Moment& computed, Clock::time_point finished,
           std::span<const BucketTimes> buckets);

  // Seconds of all steps together, in which at least one bucket was on its way, and of these those in which
  // nothing was computed any more.
  double sending_seconds() const { return sending_seconds_; }
  double exposed_seconds() const { return exposed_seconds_; }

  // What StepTiming cannot see of a job.
  struct Job {
    int ranks = 1;
    int64_t samples = 0;        // of a step of all ranks
    double latency_s = 0;       // of a short message between two of them; 0 if there is one alone
    double message_work_s = 0;  // that a processor takes in sending a short message and receiving one
  };
  // The profile for moxing/job/forecast.h, in JSON: medians over the steps after the first ones.
  // Throws FailedPrecondition if there were too few steps, IoError if it cannot be written.
  void write_profile(const std::string& path, const Job& job) const;

 private:
  struct Step {
    double compute, whole;             // computing without the sending, if they share cores
    std::vector<double> ready;         // of each bucket, since the step began, in the same way
    Communicator::Work communication;  // while the lanes computed
  };

  // Of a byte; nothing if too little was sent while the lanes computed for that to be known.
  std::optional<double> work_of_a_byte(double message_work_s) const;

  bool shares_cores_;
  double sending_seconds_ = 0, exposed_seconds_ = 0;
  std::vector<Step> steps_;  // the latest, in no order
  std::vector<int64_t> bucket_bytes_;
  size_t count_ = 0;
};

}  // namespace mox::internal
