// What a training would reach on more machines: an event model of a step, fed with the measured times of a real one.
//
// The steps of a run are written down by the option step_profile: how long it computes, how much that varies, when each bucket
// of gradients is ready. The model lets the same step run on `nodes` such processes, of which each has a link:
//
//   - all wait for the slowest: the computing of a step takes the profile's time, multiplied by the largest of `nodes` numbers
//     drawn from the measured distribution of jitter;
//   - a bucket of b bytes needs 2 (nodes - 1) / nodes * b on the link (reduce-scatter and allgather, which reach the bound of
//     Patarasuk and Yuan, 2009), after it is ready and after the buckets before it have left the link;
//   - it is there after six further latencies of the link (two phases of three messages each), during which the link can serve the next one;
//   - the step is over when all is computed and the last bucket is there.
//
// Contention in switches, other traffic, and the larger part that a processor takes in sending to more peers are not in it: what
// it says is simulated, never measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mox {

struct ProfiledBucket {
  int64_t bytes = 0;
  double ready_s = 0;  // since the step began
};

// A step of one node.
struct StepProfile {
  std::string source;        // "measured", or what is assumed, in words
  int ranks = 1;             // that took part when it was measured
  int64_t node_samples = 0;  // of a step of one node
  double compute_s = 0;      // the median
  // Quantiles of compute_s / its median, from the lowest to the highest, at equal distances.
  std::vector<double> jitter;
  std::vector<ProfiledBucket> buckets;  // in the order in which they become ready
  double latency_s = 0;                 // of the measured network; 0 if there was none
};

// Reads what step_profile has written. Throws IoError, or DataError naming what is missing or out of range.
StepProfile read_step_profile(const std::string& path);

struct ForecastLink {
  double bits_per_second = 0;  // nominal, each way
  double efficiency = 0.94;    // what the headers of TCP and Ethernet leave of it
  double latency_s = 0;        // one way
};

struct Forecast {
  double step_s = 0;  // the mean
  double samples_per_second = 0;
  double speed_up = 0;   // over one node, which has jitter too but sends nothing
  double exposed_s = 0;  // of the step: waiting for gradients after all is computed
  std::string limit;  // what costs most beside the computing: "compute" (nothing else to speak of), "jitter",
                      // "bandwidth" or "latency"
};

// The mean of 1,000 steps, whose random numbers are the same at each call. Throws InvalidArgument for nodes < 1, a rate or
// an efficiency that is not above 0, or a negative latency.
Forecast forecast_step(const StepProfile& profile, int nodes, const ForecastLink& link);

}  // namespace mox
