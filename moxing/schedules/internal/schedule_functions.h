// Shared by the files that implement schedules.
#pragma once

#include <cmath>
#include <memory>
#include <string_view>

#include "moxing/schedules/schedule.h"

namespace mox::internal {

// `border` where `number` differs from it by roundings alone, else `number`. An epoch's steps are a quotient
// that is rounded, and so is what is divided by them.
inline double snapped(double number, double border) {
  constexpr double kRelative = 1e-9;
  return std::abs(number - border) < kRelative * border ? border : number;
}

std::shared_ptr<const ScheduleFunction> constant_function(double value);

// Parses a number or MoXing's segments; see Schedule(std::string_view).
std::shared_ptr<const ScheduleFunction> parse_schedule(std::string_view text);

}  // namespace mox::internal
