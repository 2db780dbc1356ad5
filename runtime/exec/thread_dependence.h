// What of a plan's result depends on the number of threads (Kernel::has_bits_by_threads).
#pragma once

#include <cstddef>

#include "runtime/exec/plan.h"

namespace mox {

struct ThreadDependence {
  size_t instructions = 0;               // whose bits are others with another number of threads
  double floating_point_operations = 0;  // of these

  // Whether the plan gives the same bits with any number of threads.
  bool is_none() const { return instructions == 0; }
};

ThreadDependence thread_dependence_of(const Plan& plan);

}  // namespace mox
