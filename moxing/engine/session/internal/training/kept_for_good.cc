#include "moxing/engine/session/internal/training/kept_for_good.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/seconds.h"

namespace mox::internal {

KeptForGood::KeptForGood(const Interval& interval, double steps_per_epoch)
    : interval_(interval), steps_per_epoch_(steps_per_epoch) {
  if (interval.epochs > 0 && steps_per_epoch <= 0)
    throw ConfigError(fmt::format(
        "keep_checkpoint_every_n_epochs is {}, but the size of an epoch of input_fn's data is not known; use "
        "keep_checkpoint_every_n_steps or keep_checkpoint_every_n_secs, or a data set of known size",
        interval.epochs));
}

bool KeptForGood::keeps(int64_t step, int64_t saved_step) {
  bool kept = false;
  if (interval_.epochs > 0) {
    const int64_t before = completed_epochs(std::max<int64_t>(saved_step, 0), steps_per_epoch_);
    kept = completed_epochs(step, steps_per_epoch_) / interval_.epochs > before / interval_.epochs;
  }
  const bool by_time = interval_.seconds > 0 && seconds_since(last_) >= interval_.seconds;
  if (by_time) last_ = Clock::now();
  return kept || by_time;
}

}  // namespace mox::internal
