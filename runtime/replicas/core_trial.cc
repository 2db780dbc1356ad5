#include "runtime/replicas/core_trial.h"

#include <algorithm>

#include "runtime/base/seconds.h"

namespace mox::internal {
namespace {

// Of a phase that measures: both, so that a turn of other work is not the whole of it.
constexpr std::chrono::milliseconds kLeastTime(400);
constexpr int kLeastSteps = 3;
constexpr std::chrono::seconds kKeptFirst(3), kKeptAtMost(60);
constexpr int kKeptPerTrial = 8;     // at least so many times as long as a trial takes, for long steps
constexpr double kWorthwhile = 1.1;  // by so many times one core is to be faster

}  // namespace

void CoreTrial::begin(Phase phase, Clock::time_point now) {
  if (phase == Phase::kAll) trial_since_ = now;
  phase_ = phase;
  since_ = now;
  steps_ = -1;
}

void CoreTrial::decide(Clock::duration on_one, Clock::time_point now) {
  const bool one_is_faster = in_seconds(on_one) * kWorthwhile < in_seconds(on_all_);
  const bool is_as_before = kept_for_ > Clock::duration::zero() && one_is_faster == one_is_faster_;
  kept_for_ = is_as_before ? std::min<Clock::duration>(2 * kept_for_, kKeptAtMost) : kKeptFirst;
  kept_for_ = std::max(kept_for_, kKeptPerTrial * (now - trial_since_));
  one_is_faster_ = one_is_faster;
  begin(Phase::kKept, now);
}

bool CoreTrial::takes_one_core(Clock::time_point now, bool is_contended) {
  if (!is_contended) {
    phase_ = Phase::kIdle;
    kept_for_ = Clock::duration::zero();
    return false;
  }
  if (phase_ == Phase::kIdle) {
    begin(Phase::kAll, now);
    return false;
  }
  if (phase_ == Phase::kKept) {
    if (now - since_ >= kept_for_) begin(Phase::kAll, now);
    return phase_ == Phase::kKept && one_is_faster_;
  }
  if (++steps_ == 0) since_ = now;
  if (steps_ >= kLeastSteps && now - since_ >= kLeastTime) {
    const Clock::duration step = (now - since_) / steps_;
    if (phase_ == Phase::kAll) {
      on_all_ = step;
      begin(Phase::kOne, now);
    } else {
      decide(step, now);
    }
  }
  return phase_ == Phase::kOne || (phase_ == Phase::kKept && one_is_faster_);
}

}  // namespace mox::internal
