// The memory that the data pipelines of a job may take on each machine, and a rank's part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/data/memory_budget.h"

namespace mox::internal {

struct MachineMemory {
  size_t bytes = 0;                  // that the machine has
  std::optional<size_t> limit = {};  // of the control groups of this process: a container, a batch system
  std::optional<size_t> limit_of_process = {};  // of this process alone: ulimit
  int ranks = 1;                                // of the job on this machine or in this container
  int ranks_of_kernel = 1;                      // and in other containers of the same machine
};
MachineMemory machine_memory_of_job();

// A budget for all pipelines of this process: the option data_memory_mb divided among the ranks of the
// machine; for 0 a quarter of what the machine has, or of what the control groups or this process's own
// limits allow if that is less.
std::shared_ptr<MemoryBudget> data_memory_of_rank(int64_t data_memory_mb, const MachineMemory& memory);

// That of the configuration: the same one for all who ask, the pipelines of a run and the images that its
// data sets keep, until data_memory_mb is changed or the limits are. Throws
// FailedPrecondition before mox::init.
std::shared_ptr<MemoryBudget> data_memory_of_process();

}  // namespace mox::internal
