#include "moxing/job/data_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/resource_limits.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

constexpr const char* kOption = "data_memory_mb";

std::string among(int ranks) { return ranks == 1 ? "" : fmt::format(", divided among {} ranks", ranks); }

}  // namespace

MachineMemory machine_memory_of_job() {
  return {.bytes = machine_memory(),
          .limit = control_group_limits().memory_bytes,
          .ranks = job().local_size(),
          .ranks_of_kernel = ranks_of_kernel()};
}

std::shared_ptr<MemoryBudget> data_memory_of_rank(int64_t data_memory_mb, const MachineMemory& memory) {
  const size_t ranks = memory.ranks;
  if (data_memory_mb > 0)
    return std::make_shared<MemoryBudget>(
        (static_cast<size_t>(data_memory_mb) << 20) / ranks,
        fmt::format("{} is {} for this machine{}", kOption, data_memory_mb, among(memory.ranks)), kOption);
  const size_t of_machine = memory.bytes / 4 / memory.ranks_of_kernel;
  const size_t of_group = memory.limit.value_or(memory.bytes) / 4 / ranks;
  const bool group_decides = memory.limit && of_group < of_machine;
  return std::make_shared<MemoryBudget>(
      std::min(of_machine, of_group),
      group_decides
          ? fmt::format("a quarter of the {} bytes that this container or control group may have{}",
                        *memory.limit, among(memory.ranks))
          : fmt::format("a quarter of the machine's {} bytes{}", memory.bytes, among(memory.ranks_of_kernel)),
      kOption);
}

}  // namespace mox::internal
