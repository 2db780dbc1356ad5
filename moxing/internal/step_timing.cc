#include "moxing/internal/step_timing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::internal {
namespace {

constexpr size_t kWarmUpSteps = 2, kFewestSteps = 3, kMostSteps = 1000;
constexpr int kQuantiles = 100;  // intervals

double seconds(StepTiming::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

void StepTiming::add(Clock::time_point begun, Clock::time_point computed, Clock::time_point finished,
                     const GradientReduction& gradients) {
  exposed_seconds_ += seconds(finished - computed);
  // The union of the times at which buckets were on their way.
  std::vector<BucketTimes> ways(gradients.times().begin(), gradients.times().end());
  std::ranges::sort(ways, {}, &BucketTimes::ready);
  Clock::time_point covered = begun;
  for (const BucketTimes& way : ways) {
    if (way.delivered <= covered) continue;
    sending_seconds_ += seconds(way.delivered - std::max(covered, way.ready));
    covered = way.delivered;
  }
  Step step{seconds(computed - begun), seconds(finished - begun), {}};
  bucket_bytes_.clear();
  for (size_t b = 0; b < gradients.buckets(); ++b) {
    step.ready.push_back(seconds(gradients.times()[b].ready - begun));
    bucket_bytes_.push_back(gradients.bucket_elements(b) * static_cast<int64_t>(sizeof(float)));
  }
  if (++count_ <= kWarmUpSteps) return;
  if (steps_.size() < kMostSteps) {
    steps_.push_back(std::move(step));
  } else {
    steps_[count_ % kMostSteps] = std::move(step);
  }
}

void StepTiming::write_profile(const std::string& path, int ranks, int64_t samples, double latency) const {
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
      {"ranks", ranks},
      {"samples_per_step", samples},
      {"steps", steps_.size()},
      {"latency_s", latency},
      {"compute_s", median},
      {"step_s", quantile(collect([](const Step& step) { return step.whole; }), 0.5)},
  };
  for (int i = 0; i <= kQuantiles; ++i)
    profile["jitter"].push_back(quantile(compute, static_cast<double>(i) / kQuantiles) / median);
  for (size_t b = 0; b < bucket_bytes_.size(); ++b)
    profile["buckets"].push_back(
        {{"bytes", bucket_bytes_[b]},
         {"ready_s", quantile(collect([b](const Step& step) { return step.ready[b]; }), 0.5)}});
  write_file_atomically(path, profile.dump(1) + "\n");
}

}  // namespace mox::internal
