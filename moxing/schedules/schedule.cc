#include "moxing/schedules/schedule.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "moxing/schedules/internal/schedule_functions.h"
#include "runtime/base/error.h"

namespace mox {

double TrainingLength::elapsed(int64_t step, double steps_per_epoch) const {
  if (unit == Unit::kSteps) return step;
  if (steps_per_epoch <= 0)
    throw FailedPrecondition(fmt::format(
        "a schedule is written in epochs ({}), but the number of steps in an epoch is unknown, since the "
        "data set has no known size: write the schedule in steps, or tell the run its steps per epoch",
        to_string(*this)));
  return internal::snapped(step / steps_per_epoch, value);
}

TrainingLength steps(double count) { return {count, TrainingLength::Unit::kSteps}; }
TrainingLength epochs(double count) { return {count, TrainingLength::Unit::kEpochs}; }

std::string to_string(const TrainingLength& length) {
  return fmt::format("{} {}", length.value, length.unit == TrainingLength::Unit::kSteps ? "steps" : "epochs");
}

Schedule::Schedule(std::string_view text) : function_(internal::parse_schedule(text)) {}
Schedule::Schedule(const std::string& text) : Schedule(std::string_view(text)) {}
Schedule::Schedule(const char* text) : Schedule(std::string_view(text == nullptr ? "" : text)) {}

Schedule::Schedule(std::shared_ptr<const ScheduleFunction> function) : function_(std::move(function)) {
  if (!function_) throw InvalidArgument("a schedule needs a function, got null");
}

Schedule Schedule::make_constant(double value) {
  if (!std::isfinite(value))
    throw InvalidArgument(fmt::format("a constant schedule must be a finite number, got {}", value));
  return Schedule(internal::constant_function(value));
}

double Schedule::value(int64_t step, double steps_per_epoch) const {
  if (step < 0) throw InvalidArgument(fmt::format("a schedule is asked for a step >= 0, got {}", step));
  return function_->value(step, steps_per_epoch);
}

}  // namespace mox
