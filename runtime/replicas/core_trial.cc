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

void CoreTrial::begin(Phase phase) {
  if (phase == Phase::kAll) trial_ = Clock::duration::zero();
  phase_ = phase;
  steps_ = -1;
  measured_ = Clock::duration::zero();
}

void CoreTrial::decide(Clock::duration on_one, Clock::time_point now) {
  const bool one_is_faster = in_seconds(on_one) * kWorthwhile < in_seconds(on_all_);
  const bool is_as_before = kept_for_ > Clock::duration::zero() && one_is_faster == one_is_faster_;
  kept_for_ = is_as_before ? std::min<Clock::duration>(2 * kept_for_, kKeptAtMost) : kKeptFirst;
  kept_for_ = std::max(kept_for_, kKeptPerTrial * trial_);
  one_is_faster_ = one_is_faster;
  kept_since_ = now;
  begin(Phase::kKept);
}

bool CoreTrial::takes_one_core(Clock::time_point now, bool is_contended) {
  if (!is_contended) {
    phase_ = Phase::kIdle;
    kept_for_ = Clock::duration::zero();
    return false;
  }
  if (phase_ == Phase::kIdle || (phase_ == Phase::kKept && now - kept_since_ >= kept_for_))
    begin(Phase::kAll);
  if (phase_ != Phase::kKept && steps_ >= kLeastSteps && measured_ >= kLeastTime) {
    const Clock::duration step = measured_ / steps_;
    if (phase_ == Phase::kAll) {
      on_all_ = step;
      begin(Phase::kOne);
    } else {
      decide(step, now);
    }
  }
  return phase_ == Phase::kOne || (phase_ == Phase::kKept && one_is_faster_);
}

void CoreTrial::note_step(Clock::duration step) {
  if (phase_ == Phase::kIdle || phase_ == Phase::kKept) return;
  trial_ += step;
  if (++steps_ > 0) measured_ += step;
}

}  // namespace mox::internal
