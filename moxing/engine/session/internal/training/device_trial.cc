#include "moxing/engine/session/internal/training/device_trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "moxing/engine/compile/compiled_model.h"
#include "moxing/engine/session/internal/batches.h"
#include "moxing/engine/session/internal/training/distribution_settings.h"
#include "moxing/model/variable_store.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/seconds.h"
#include "runtime/comm/allgather_values.h"
#include "runtime/interruption/interruption.h"
#include "runtime/replicas/lane_threads.h"

namespace mox::internal {
namespace {

using Clock = std::chrono::steady_clock;

// Of the passes that are timed, after one that is not: the fastest counts, since whatever
// disturbs makes slower.
constexpr size_t kLeastPasses = 3, kMostPasses = 20;
constexpr std::chrono::milliseconds kEnoughTime(500);

std::vector<Array> zeros_of(const std::vector<TensorType>& signature) {
  std::vector<Array> batch;
  for (const TensorType& type : signature) {
    batch.emplace_back(type);
    std::memset(batch.back().data(), 0, batch.back().bytes());
  }
  return batch;
}

enum class Counts { kFastestPass, kMedianPass };

// Batches a second that the lanes of this process compute together.
double batches_per_second(const RunSpec& spec, const RunSettings& settings, const Placement& placement,
                          const std::vector<TensorType>& signature, Counts counts) {
  const Team team(placement.threads_per_replica);
  const EnteredTeam entered(team);
  VariableStore store(settings.seed);
  LaneThreads lanes(placement.lanes, team);
  ModelCompiler compiler(spec.model_fn, ModeKeys::TRAIN, store, team, settings.arithmetic, {},
                         placement.lanes);
  compiler.set_training(training_facts_of(settings, placement), settings.normalises_frozen);
  CompiledModel& model = compiler.for_signature(signature);
  const std::vector<Array> batch = zeros_of(signature);
  const auto pass = [&] {
    throw_if_interrupted();
    const auto begin = Clock::now();
    lanes.run([&](int lane) { model.of_lane(lane).run({.components = batch, .seed = settings.seed}); });
    return seconds_since(begin);
  };
  pass();
  std::vector<double> seconds = {pass()};
  const auto until = Clock::now() + kEnoughTime;
  while (seconds.size() < kLeastPasses || (seconds.size() < kMostPasses && Clock::now() < until))
    seconds.push_back(pass());
  std::ranges::sort(seconds);
  return placement.lanes / seconds[counts == Counts::kMedianPass ? seconds.size() / 2 : 0];
}

double sum_over_ranks(Communicator& ranks, double value) {
  ranks.allreduce(std::span(&value, 1));
  return value;
}

// Those of `own` that are possible on every rank: ranks may have different numbers of cores, and all try the
// same together.
std::vector<int> possible_everywhere(Communicator& ranks, const std::vector<int>& own) {
  std::vector<int> result = own;
  for (const std::vector<int>& theirs : allgather_values(ranks, own))
    std::erase_if(result, [&](int devices) { return std::ranges::find(theirs, devices) == theirs.end(); });
  return result;
}

std::vector<TensorType> training_signature(const RunSpec& spec, const RunSettings& settings) {
  return batches_of(data_of(spec, ModeKeys::TRAIN), settings, ModeKeys::TRAIN, settings.data.batch_size)
      .signature();
}

bool can_be_placed(const RunSettings& settings, const StartingPoint& start, const TrainingState& restored) {
  try {
    placement_of(settings, start, restored);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Those that the run will have; 0: one a device.
int64_t replicas_of(const RunSettings& settings, const StartingPoint& start, const TrainingState& restored) {
  const int64_t wanted = settings.distribution.logical_replicas;
  const bool others = settings.distribution.allow_inexact && wanted > 0;
  return start.kind == StartingPoint::Kind::kContinued && !others ? restored.logical_replicas : wanted;
}

// The threads that a process of the continued run had, or 0 where its checkpoint does not tell: older ones
// know those of a replica alone, of which a device with several has more.
int threads_before(const TrainingState& restored, int ranks) {
  if (restored.process_threads > 0) return restored.process_threads;
  return restored.logical_replicas > int64_t{ranks} * restored.devices ? 0
                                                                       : restored.threads * restored.devices;
}

// What a trial is made of.
struct Trial {
  const RunSpec& spec;
  const RunSettings& settings;
  const StartingPoint& start;
  const TrainingState& restored;
  Communicator& ranks;
};

// The one of `possible` values of a setting with which all ranks together compute most samples a second,
// which is logged under the option's name.
int fastest_of(std::string_view option, const std::vector<int>& possible, int RunSettings::Cores::*setting,
               Counts counts, const Trial& trial) {
  const std::vector<TensorType> signature = training_signature(trial.spec, trial.settings);
  const double samples = signature.at(0).shape[0];
  int best = 0;
  double best_rate = 0;
  std::vector<std::string> lines;
  for (const int value : possible) {
    RunSettings tried = trial.settings;
    tried.cores.*setting = value;
    trial.ranks.barrier();
    const Placement placement = placement_of(tried, trial.start, trial.restored);
    const double rate = sum_over_ranks(
        trial.ranks, batches_per_second(trial.spec, tried, placement, signature, counts) * samples);
    lines.push_back(fmt::format("{}: {:.4g}", value, rate));
    if (rate > best_rate) {
      best = value;
      best_rate = rate;
    }
  }
  log_info(fmt::format("{} auto: {} (samples/s with {})", option, best, fmt::join(lines, ", ")));
  return best;
}

}  // namespace

std::vector<int> possible_devices(const RunSettings& settings, const StartingPoint& start,
                                  const TrainingState& restored, int ranks) {
  const int64_t replicas = replicas_of(settings, start, restored);
  const bool continued = start.kind == StartingPoint::Kind::kContinued;
  const int least_threads = continued && replicas > 1 ? std::max(1, restored.threads) : 1;
  std::vector<int> result;
  for (int devices = 1; devices <= settings.cores.threads; ++devices) {
    const bool is_even = settings.cores.threads_per_device > 0
                             ? devices * settings.cores.threads_per_device <= settings.cores.threads
                             : settings.cores.threads % devices == 0;
    const bool is_spread = replicas == 0 || replicas % (int64_t{ranks} * devices) == 0;
    if (is_even && is_spread && settings.cores.threads / devices >= least_threads) result.push_back(devices);
  }
  return result;
}

int choose_devices(const RunSpec& spec, const RunSettings& settings, const StartingPoint& start,
                   const TrainingState& restored, Communicator& ranks) {
  const std::vector<int> possible =
      possible_everywhere(ranks, possible_devices(settings, start, restored, ranks.size()));
  if (possible.empty())
    throw Conflict(
        fmt::format("num_devices is auto, but no number of devices is possible with {} threads and {} ranks: "
                    "the logical replicas of the run ({}) must be a multiple of ranks x devices. Choose "
                    "another number of ranks, or give num_devices with --allow_inexact",
                    settings.cores.threads, ranks.size(), replicas_of(settings, start, restored)));
  if (start.kind == StartingPoint::Kind::kContinued &&
      std::ranges::find(possible, restored.devices) != possible.end()) {
    log_info(fmt::format("num_devices auto: {}, as before", restored.devices));
    return restored.devices;
  }
  if (possible.size() == 1) {
    log_info(fmt::format("num_devices auto: {}, the only number that is possible", possible[0]));
    return possible[0];
  }
  return fastest_of("num_devices", possible, &RunSettings::Cores::devices, Counts::kFastestPass,
                    {spec, settings, start, restored, ranks});
}

int choose_threads(const RunSpec& spec, const RunSettings& settings, const StartingPoint& start,
                   const TrainingState& restored, Communicator& ranks) {
  std::vector<int> possible;
  RunSettings tried = settings;
  for (int threads = settings.cores.threads; threads >= 1; threads /= 2) {
    tried.cores.threads = threads;
    if (can_be_placed(tried, start, restored)) possible.push_back(threads);
  }
  possible = possible_everywhere(ranks, possible);
  if (possible.size() < 2)
    return settings.cores.threads;  // whatever is wrong with it is said where it is placed
  if (start.kind == StartingPoint::Kind::kContinued) {
    const int before = threads_before(restored, ranks.size());
    if (std::ranges::find(possible, before) != possible.end()) {
      log_info(fmt::format("threads auto: {}, as before", before));
      return before;
    }
  }
  return fastest_of("threads", possible, &RunSettings::Cores::threads, Counts::kMedianPass,
                    {spec, settings, start, restored, ranks});
}

}  // namespace mox::internal
