#include "moxing/engine/session/internal/training/kept_for_good.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/seconds.h"

namespace mox::internal {

KeptForGood::KeptForGood(const Interval& interval, double steps_per_epoch) : interval_(interval) {
  if (interval.epochs > 0 && steps_per_epoch <= 0)
    throw ConfigError(fmt::format(
        "keep_checkpoint_every_n_epochs is {}, but the size of an epoch of input_fn's data is not known; use "
        "keep_checkpoint_every_n_steps or keep_checkpoint_every_n_secs, or a data set of known size",
        interval.epochs));
}

bool KeptForGood::keeps(double passes, double passes_before) {
  const bool kept = interval_.epochs > 0 && completed_epochs(passes) / interval_.epochs >
                                                completed_epochs(passes_before) / interval_.epochs;
  const bool by_time = interval_.seconds > 0 && seconds_since(last_) >= interval_.seconds;
  if (by_time) last_ = Clock::now();
  return kept || by_time;
}

}  // namespace mox::internal
