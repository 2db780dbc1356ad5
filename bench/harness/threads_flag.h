// `threads`, which is a number or auto, as the number of threads that a benchmark takes by itself.
#pragma once

#include <cmath>

#include "moxing/config/flags.h"
#include "runtime/base/resource_limits.h"

namespace bench {

// 0: one for each core that the process may use. Throws InvalidArgument for auto: what a benchmark of kernels
// measures has no run that could try several.
inline int threads_flag() {
  const double given = mox::get_flag<double>("threads");
  return given > 0 ? static_cast<int>(std::lround(given)) : mox::available_cores();
}

}  // namespace bench
