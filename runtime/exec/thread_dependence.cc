#include "runtime/exec/thread_dependence.h"

#include "runtime/exec/internal/plan_impl.h"

namespace mox {

ThreadDependence thread_dependence_of(const Plan& plan) {
  ThreadDependence result;
  for (const PlanInstruction& instruction : plan.impl().instructions) {
    if (!instruction.kernel.has_bits_by_threads) continue;
    ++result.instructions;
    result.floating_point_operations += instruction.kernel.floating_point_operations;
  }
  return result;
}

}  // namespace mox
