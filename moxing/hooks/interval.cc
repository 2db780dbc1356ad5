#include "moxing/hooks/interval.h"

#include <fmt/format.h>

#include <cmath>

#include "moxing/job/distributed.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/seconds.h"

namespace mox {

IntervalClock::IntervalClock(const Interval& interval, std::string what, bool together)
    : interval_(interval), what_(std::move(what)), together_(together) {
  if (interval.steps < 0 || interval.epochs < 0 ||
      !(interval.seconds >= 0 && std::isfinite(interval.seconds)))
    throw InvalidArgument(
        fmt::format("the interval of the {} must be >= 0, it is {} steps, {} seconds, {} epochs", what_,
                    interval.steps, interval.seconds, interval.epochs));
}

void IntervalClock::start(const Session& session) {
  if (interval_.epochs > 0 && session.steps_per_epoch() <= 0)
    throw Conflict(
        fmt::format("the interval of the {} is {} epochs, but the size of an epoch of input_fn's data is not "
                    "known; give it in steps or seconds, or use a data set of known size",
                    what_, interval_.epochs));
  done();
}

bool IntervalClock::is_due(const Session& session) {
  const int64_t step = session.global_step();
  bool due = interval_.steps > 0 && step % interval_.steps == 0;
  if (interval_.epochs > 0)
    due |= completed_epochs(session.passes(step)) / interval_.epochs >
           completed_epochs(session.passes(step - 1)) / interval_.epochs;
  if (interval_.seconds > 0) due |= time_is_up();
  if (due) done();
  return due;
}

bool IntervalClock::time_is_up() const {
  const bool here = seconds_since(last_) >= interval_.seconds;
  if (!together_ || size() == 1) return here;
  return broadcast(here ? "yes" : "no") == "yes";
}

int64_t completed_epochs(double passes) {
  // A pass whose end lies within a step ends with it.
  return static_cast<int64_t>(std::floor(passes + 1e-9));
}

int64_t completed_epochs(int64_t steps, double steps_per_epoch) {
  return completed_epochs(steps / steps_per_epoch);
}

}  // namespace mox
