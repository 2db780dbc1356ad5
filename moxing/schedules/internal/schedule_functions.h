// Shared by the files that implement schedules.
#pragma once

#include <memory>
#include <string_view>

#include "moxing/schedules/schedule.h"

namespace mox::internal {

std::shared_ptr<const ScheduleFunction> constant_function(double value);

// Parses a number or MoXing's segments; see Schedule(std::string_view).
std::shared_ptr<const ScheduleFunction> parse_schedule(std::string_view text);

}  // namespace mox::internal
