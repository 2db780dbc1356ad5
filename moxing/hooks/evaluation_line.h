// What a run says of an evaluation between its steps.
#pragma once

#include <cstdint>
#include <string>

#include "moxing/hooks/hook.h"

namespace mox::internal {

// "evaluation at global step 40:  loss: 0.310  accuracy: 0.912"
std::string evaluation_line(int64_t step, const Metrics& metrics);

}  // namespace mox::internal
