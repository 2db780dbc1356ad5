// How the ranks of a job share the cores of their machines.
#pragma once

#include <sched.h>

#include <span>
#include <string>

#include "runtime/job/internal/machine.h"

namespace mox::internal {

// What a rank may use by what the system says.
struct RankCores {
  std::string kernel, machine;  // as Machine has them
  cpu_set_t allowed{};
  double quota = 0;  // cores that its control groups allow; 0: no limit

  std::string to_bytes() const;
  static RankCores from_bytes(const std::string& bytes);
};

// The cores of rank `own`. Ranks of one kernel that may use the same ones take a share each, also from
// different containers; of fewer cores than ranks each gets one, which it shares. Ranks whose masks differ
// (mpirun or a cpuset has bound them) have theirs already. Ranks of one machine share its quota, and take no
// more cores than their part of it.
cpu_set_t share_of_cores(std::span<const RankCores> ranks, int own);

}  // namespace mox::internal
