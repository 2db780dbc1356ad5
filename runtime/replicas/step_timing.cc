#include "runtime/replicas/step_timing.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/seconds.h"

namespace mox::internal {
namespace {

constexpr size_t kWarmUpSteps = 2, kFewestSteps = 3, kMostSteps = 1000;
constexpr int kQuantiles = 100;  // intervals
// Of what is sent, that must have left while the lanes computed.
constexpr double kLeastShareSeen = 0.05;

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const double place = share * (values.size() - 1);
  const size_t below = place;
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - below) * (values[above] - values[below]);
}

}  // namespace

void StepTiming::add(const Moment& begun, const Moment& computed, Clock::time_point finished,
                     std::span<const BucketTimes> buckets) {
  exposed_seconds_ += in_seconds(finished - computed.time);
  // The union of the times at which buckets were on their way.
  std::vector<BucketTimes> ways(buckets.begin(), buckets.end());
  std::ranges::sort(ways, {}, &BucketTimes::ready);
  Clock::time_point covered = begun.time;
  for (const BucketTimes& way : ways) {
    if (way.delivered <= covered) continue;
    sending_seconds_ += in_seconds(way.delivered - std::max(covered, way.ready));
    covered = way.delivered;
  }
  // The seconds since the step began, without those that went into sending.
  const auto own_seconds = [&](Clock::time_point time, double communication_s) {
    const double sending = communication_s - begun.communication.processor_seconds;
    return in_seconds(time - begun.time) - (shares_cores_ ? sending : 0);
  };
  Step step{
      .compute = own_seconds(computed.time, computed.communication.processor_seconds),
      .whole = in_seconds(finished - begun.time),
      .ready = {},
      .communication = {computed.communication.processor_seconds - begun.communication.processor_seconds,
                        computed.communication.messages_sent - begun.communication.messages_sent,
                        computed.communication.bytes_sent - begun.communication.bytes_sent}};
  bucket_bytes_.clear();
  for (const BucketTimes& bucket : buckets) {
    step.ready.push_back(own_seconds(bucket.ready, bucket.communication_s));
    bucket_bytes_.push_back(bucket.elements * sizeof(float));
  }
  if (++count_ <= kWarmUpSteps) return;
  if (steps_.size() < kMostSteps) {
    steps_.push_back(std::move(step));
  } else {
    steps_[count_ % kMostSteps] = std::move(step);
  }
}

std::optional<double> StepTiming::work_of_a_byte(double message_work_s) const {
  Communicator::Work seen;
  for (const Step& step : steps_) {
    seen.processor_seconds += step.communication.processor_seconds;
    seen.messages_sent += step.communication.messages_sent;
    seen.bytes_sent += step.communication.bytes_sent;
  }
  const double bytes = seen.bytes_sent;
  const double all =
      static_cast<double>(std::accumulate(bucket_bytes_.begin(), bucket_bytes_.end(), int64_t{0})) *
      steps_.size();
  if (bytes == 0 || bytes < kLeastShareSeen * all) return std::nullopt;
  return std::max(0.0, seen.processor_seconds - static_cast<double>(seen.messages_sent) * message_work_s) /
         bytes;
}

void StepTiming::write_profile(const std::string& path, const Job& job) const {
  if (steps_.size() < kFewestSteps)
    throw FailedPrecondition("step_profile needs a run of at least " +
                             std::to_string(kWarmUpSteps + kFewestSteps) + " steps, this one had " +
                             std::to_string(count_));
  const auto collect = [&](const auto& of) {
    std::vector<double> values;
    for (const Step& step : steps_) values.push_back(of(step));
    return values;
  };
  const std::vector<double> compute = collect([](const Step& step) { return step.compute; });
  const double median = quantile(compute, 0.5);
  nlohmann::ordered_json profile = {
      {"source", "measured"},
      {"ranks", job.ranks},
      {"samples_per_step", job.samples},
      {"steps", steps_.size()},
      {"latency_s", job.latency_s},
      {"compute_s", median},
      {"step_s", quantile(collect([](const Step& step) { return step.whole; }), 0.5)},
  };
  if (const auto of_a_byte = work_of_a_byte(job.message_work_s))
    profile["sending_work"] = {{"seconds_per_byte", *of_a_byte},
                               {"seconds_per_message", job.message_work_s},
                               {"shares_cores", shares_cores_}};
  for (int i = 0; i <= kQuantiles; ++i)
    profile["jitter"].push_back(quantile(compute, static_cast<double>(i) / kQuantiles) / median);
  for (size_t b = 0; b < bucket_bytes_.size(); ++b)
    profile["buckets"].push_back(
        {{"bytes", bucket_bytes_[b]},
         {"ready_s", quantile(collect([b](const Step& step) { return step.ready[b]; }), 0.5)}});
  write_file_atomically(path, profile.dump(1) + "\n");
}

}  // namespace mox::internal
