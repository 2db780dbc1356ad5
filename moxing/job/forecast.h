// What a training would reach on more machines: an event model of a step, fed with the measured times of a
// real one.
//
// The steps of a run are written down by the option step_profile: how long it computes, how much that varies,
// when each bucket of gradients is ready. The model lets the same step run on `nodes` such processes, of
// which each has a link:
//
//   - all wait for the slowest: the computing of a step takes the profile's time, multiplied by the largest
//     of `nodes` numbers drawn from the measured distribution of jitter;
//   - of a bucket of b bytes each node sends s = 2 (nodes - 1) / nodes * b (reduce-scatter and allgather,
//     which reach the bound of Patarasuk and Yuan, 2009) in m messages, as the engine cuts it
//     (bucket_messages);
//   - that takes w = s * seconds_per_byte + m * seconds_per_message of a processor: copying into and out of
//     the kernel, its protocols, summing, and applying the optimizer to what has arrived;
//   - and max(8 s / rate, w) of the link, after the bucket is ready and after those before it have left the
//     link;
//   - while it does, the computing comes forward by only max(8 s / rate, w) - w if it shares its cores with
//     the sending, which comes first; else by all of that time. Buckets that are not ready yet become so
//     later by as much;
//   - a bucket is there after six further latencies of the link (two phases of three messages each), during
//     which the link can serve the next one;
//   - the step is over when all is computed and the last bucket is there.
//
// Contention in switches and other traffic are not in it: what it says is simulated, never measured.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mox {

struct ProfiledBucket {
  int64_t bytes = 0;
  double ready_s = 0;  // since the step began
};

// What sending takes of a processor.
struct SendingWork {
  double seconds_per_byte = 0;     // sent; receiving as much is in it
  double seconds_per_message = 0;  // sent; receiving one is in it
  bool shares_cores = false;       // with the computing, which then loses that time
};

// A step of one node. In its file, JSON, the members have the same names, apart from samples_per_step: those
// of all ranks.
struct StepProfile {
  std::string source;        // "measured", or what is assumed, in words
  int ranks = 1;             // that took part when it was measured
  int64_t node_samples = 0;  // of a step of one node
  double compute_s = 0;      // the median; without the work of sending, like ready_s of the buckets
  // Quantiles of compute_s / its median, from the lowest to the highest, at equal distances.
  std::vector<double> jitter;
  std::vector<ProfiledBucket> buckets;  // in the order in which they become ready
  double latency_s = 0;                 // of the measured network; 0 if there was none
  // None if it is not known: a profile of one rank, of a run in which nothing was sent while it computed, or
  // of an older version. Sending is then taken to need no processor.
  std::optional<SendingWork> sending_work = {};
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
                      // "bandwidth", "latency" or "processor" (the work of sending)
};

// The mean of 1,000 steps, whose random numbers are the same at each call. Throws InvalidArgument for nodes <
// 1, a rate or an efficiency that is not above 0, or a negative latency.
Forecast forecast_step(const StepProfile& profile, int nodes, const ForecastLink& link);

}  // namespace mox
