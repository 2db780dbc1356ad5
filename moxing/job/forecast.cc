#include "moxing/job/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "moxing/json/bounded_json.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/replicas/gradient_reduction.h"

namespace mox {
namespace {

// A profile's numbers, of eight digits and more, take less memory than this many times its size.
constexpr size_t kMostTimes = 16;

constexpr double kShortest = 1e-9, kLongest = 1e6;  // seconds that a profile may give, and factors of them
constexpr double kFastest = 1e18;                   // bits a second

constexpr int kSteps = 1000;
// Messages that follow one another before a sum is there: in each of its two phases the announcement of a
// long message, its acceptance, and the message.
constexpr int kLatenciesOfASum = 6;
// Of the time of a step, below which a loss is not worth a name.
constexpr double kNotable = 0.02;

double quantile(const std::vector<double>& quantiles, double share) {
  const double place = share * (quantiles.size() - 1);
  const auto below = std::min(static_cast<size_t>(place), quantiles.size() - 1);
  const size_t above = std::min(below + 1, quantiles.size() - 1);
  return quantiles[below] + (place - below) * (quantiles[above] - quantiles[below]);
}

struct SimulatedStep {
  double computed_s = 0, finished_s = 0;
};

// A walk through a step of which computing takes `slowness` times what it takes in the profile.
SimulatedStep simulate(const StepProfile& profile, int nodes, const ForecastLink& link, double slowness) {
  SimulatedStep step;
  const double all = profile.compute_s * slowness;
  double now = 0, computed = 0;  // of `all`, in its seconds
  const auto pass = [&](double seconds, double forward) {
    if (computed < all && computed + forward >= all)
      step.computed_s = now + seconds * (all - computed) / forward;
    computed += forward;
    now += seconds;
  };
  const SendingWork work = profile.sending_work.value_or(SendingWork());
  if (nodes > 1)
    for (const ProfiledBucket& bucket : profile.buckets) {
      const double ready = bucket.ready_s * slowness;
      if (ready > computed) pass(ready - computed, ready - computed);
      const double bytes = 2.0 * (nodes - 1) / nodes * bucket.bytes;
      const auto elements = bucket.bytes / static_cast<int64_t>(sizeof(float));
      const double working = bytes * work.seconds_per_byte +
                             internal::bucket_messages(elements, nodes) * work.seconds_per_message;
      const double sending = std::max(bytes * 8 / (link.bits_per_second * link.efficiency), working);
      pass(sending, work.shares_cores ? sending - working : sending);
      step.finished_s = std::max(step.finished_s, now + link.latency_s * kLatenciesOfASum);
    }
  if (computed < all) pass(all - computed, all - computed);
  step.finished_s = std::max(step.finished_s, step.computed_s);
  return step;
}

SimulatedStep mean_step(const StepProfile& profile, int nodes, const ForecastLink& link) {
  SimulatedStep mean;
  const RandomStream random(1, 1);
  for (int i = 0; i < kSteps; ++i) {
    // The largest of n numbers has the n-th power of their distribution.
    const double share = std::pow(random.uniform(i), 1.0 / nodes);
    const SimulatedStep step = simulate(profile, nodes, link, quantile(profile.jitter, share));
    mean.computed_s += step.computed_s / kSteps;
    mean.finished_s += step.finished_s / kSteps;
  }
  return mean;
}

void check_link(int nodes, const ForecastLink& link) {
  if (nodes < 1) throw InvalidArgument(fmt::format("a forecast needs at least 1 node, got {}", nodes));
  const auto is_within = [](double value, double least, double most) {
    return value >= least && value <= most;
  };
  if (!is_within(link.bits_per_second, 1, kFastest) || !(link.efficiency > 0 && link.efficiency <= 1) ||
      !is_within(link.latency_s, 0, kLongest))
    throw InvalidArgument(fmt::format(
        "a link needs a rate of 1 to {} bit/s, an efficiency in (0, 1] and a latency of 0 to {} s; got "
        "{} bit/s, {} and {} s",
        kFastest, kLongest, link.bits_per_second, link.efficiency, link.latency_s));
}

}  // namespace

StepProfile read_step_profile(const std::string& path) {
  const std::string text = read_file(path);
  require_bounded_json(text, path, kMostTimes);
  const auto json = parse_json_or_discard(text, path);
  const auto refuse = [&](const std::string& what) -> void {
    throw DataError(
        fmt::format("'{}' is no profile of steps as the option step_profile writes it: {}", path, what));
  };
  if (!json.is_object()) refuse("expected a JSON object");
  // The library's own conversion cuts off what does not fit.
  const auto whole = [&](const nlohmann::json& of, const char* name, int64_t most) {
    const auto& value = of.at(name);
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && std::cmp_greater(value.get<uint64_t>(), most)) ||
        value.get<int64_t>() < 0)
      refuse(fmt::format("{} must be a whole number from 0 to {}, it is {}", name, most, value.dump()));
    return value.get<int64_t>();
  };
  StepProfile profile;
  try {
    profile.source = json.at("source").get<std::string>();
    profile.ranks = static_cast<int>(whole(json, "ranks", std::numeric_limits<int>::max()));
    const auto samples = whole(json, "samples_per_step", INT64_MAX);
    profile.compute_s = json.at("compute_s").get<double>();
    profile.jitter = json.at("jitter").get<std::vector<double>>();
    profile.latency_s = json.value("latency_s", 0.0);
    if (json.contains("sending_work")) {
      const auto& work = json.at("sending_work");
      profile.sending_work = {work.at("seconds_per_byte").get<double>(),
                              work.at("seconds_per_message").get<double>(),
                              work.at("shares_cores").get<bool>()};
    }
    for (const auto& bucket : json.at("buckets"))
      profile.buckets.push_back({whole(bucket, "bytes", INT64_MAX), bucket.at("ready_s").get<double>()});
    if (profile.ranks < 1 || samples < profile.ranks) refuse("ranks and samples_per_step must be at least 1");
    profile.node_samples = samples / profile.ranks;
  } catch (const nlohmann::json::exception& error) {
    refuse(error.what());
  }
  // Beyond these bounds sums and quotients are no numbers any more, and a step is none.
  const auto is_time = [](double value) { return value >= 0 && value <= kLongest; };
  if (!is_time(profile.compute_s) || profile.compute_s < kShortest)
    refuse(fmt::format("compute_s must be {} to {}, it is {}", kShortest, kLongest, profile.compute_s));
  if (!is_time(profile.latency_s))
    refuse(fmt::format("latency_s must be 0 to {}, it is {}", kLongest, profile.latency_s));
  const SendingWork work = profile.sending_work.value_or(SendingWork());
  if (!is_time(work.seconds_per_byte) || !is_time(work.seconds_per_message))
    refuse(fmt::format("sending_work has seconds_per_byte and seconds_per_message of 0 to {}", kLongest));
  if (profile.jitter.empty() || !std::ranges::is_sorted(profile.jitter) ||
      !std::ranges::all_of(profile.jitter,
                           [&](double value) { return is_time(value) && value >= kShortest; }))
    refuse(fmt::format("jitter must be a list of ascending numbers of {} to {}", kShortest, kLongest));
  for (const ProfiledBucket& bucket : profile.buckets)
    if (bucket.bytes < 0 || !is_time(bucket.ready_s))
      refuse(fmt::format("a bucket has bytes of at least 0 and ready_s of 0 to {}", kLongest));
  std::ranges::stable_sort(profile.buckets, {}, &ProfiledBucket::ready_s);
  return profile;
}

Forecast forecast_step(const StepProfile& profile, int nodes, const ForecastLink& link) {
  check_link(nodes, link);
  const SimulatedStep alone = mean_step(profile, 1, link), step = mean_step(profile, nodes, link);
  Forecast result;
  result.step_s = step.finished_s;
  result.samples_per_second = static_cast<double>(profile.node_samples) * nodes / step.finished_s;
  result.speed_up = nodes * alone.finished_s / step.finished_s;
  result.exposed_s = step.finished_s - step.computed_s;
  // What each of the others costs, by leaving it out.
  StepProfile without_work = profile;
  without_work.sending_work.reset();
  const SimulatedStep no_work = mean_step(without_work, nodes, link);
  ForecastLink immediate = link;
  immediate.latency_s = 0;
  const double processor = step.finished_s - no_work.finished_s,
               jitter = no_work.computed_s - alone.computed_s,
               latency = no_work.finished_s - mean_step(without_work, nodes, immediate).finished_s,
               bandwidth = no_work.finished_s - no_work.computed_s - latency;
  const double largest = std::max({jitter, latency, bandwidth, processor});
  result.limit = largest < kNotable * step.finished_s ? "compute"
                 : largest == bandwidth               ? "bandwidth"
                 : largest == latency                 ? "latency"
                 : largest == jitter                  ? "jitter"
                                                      : "processor";
  return result;
}

}  // namespace mox
