#include "runtime/data/internal/thread_tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace mox::data::internal {

bool ThreadTuner::observe(double seconds_per_batch, double wait_share) {
  MOX_ASSERT(!settled_, "a choice that is final is not measured again");
  history_ += fmt::format("{} {:.0f} % of {:.3g} ms a batch with {}", history_.empty() ? "waited" : ",",
                          100 * wait_share, 1e3 * seconds_per_batch, threads_);
  if (before_ > 0 && seconds_per_batch > (1 - kWorthwhile) * seconds_before_) {
    threads_ = before_;
    settled_ = true;
    return true;
  }
  if (wait_share <= kTolerableWait || threads_ >= most_) {
    settled_ = true;
    return false;
  }
  before_ = threads_;
  seconds_before_ = seconds_per_batch;
  threads_ = std::min(2 * threads_, most_);
  return true;
}

}  // namespace mox::data::internal
