#include "runtime/exec/thread_dependence.h"

#include "runtime/exec/internal/plan_impl.h"
#include "runtime/graph/thread_dependence.h"

namespace mox {

ThreadDependence thread_dependence_of(const Plan& plan) {
  ThreadDependence result;
  for (const PlanInstruction& instruction : plan.impl().instructions) {
    if (!has_bits_by_threads(instruction.kernel)) continue;
    ++result.instructions;
    result.floating_point_operations += instruction.kernel.floating_point_operations;
  }
  return result;
}

}  // namespace mox
