#include "moxing/job/data_memory.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "moxing/config/flags.h"
#include "moxing/config/state.h"
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
          .limit_of_process = process_memory_limit(),
          .ranks = job().local_size(),
          .ranks_of_kernel = ranks_of_kernel()};
}

std::shared_ptr<MemoryBudget> data_memory_of_rank(int64_t data_memory_mb, const MachineMemory& memory) {
  const size_t ranks = memory.ranks;
  if (data_memory_mb > 0)
    return std::make_shared<MemoryBudget>(
        (static_cast<size_t>(data_memory_mb) << 20) / ranks,
        fmt::format("{} is {} for this machine{}", kOption, data_memory_mb, among(memory.ranks)), kOption);
  std::pair<size_t, std::string> least{
      memory.bytes / 4 / memory.ranks_of_kernel,
      fmt::format("a quarter of the machine's {} bytes{}", memory.bytes, among(memory.ranks_of_kernel))};
  const auto at_most = [&](std::optional<size_t> limit, int of, std::string_view whose) {
    if (limit && *limit / 4 / of < least.first)
      least = {*limit / 4 / of, fmt::format("a quarter of the {} bytes that {}{}", *limit, whose, among(of))};
  };
  at_most(memory.limit, memory.ranks, "this container or control group may have");
  at_most(memory.limit_of_process, 1, "ulimit lets this process have");
  return std::make_shared<MemoryBudget>(least.first, std::move(least.second), kOption);
}

std::shared_ptr<MemoryBudget> data_memory_of_process() {
  std::shared_ptr<MemoryBudget> budget =
      data_memory_of_rank(get_flag<int64_t>(kOption), machine_memory_of_job());
  with_config([&](ConfigState* state) {
    if (state->data_memory && state->data_memory->describe() == budget->describe())
      budget = state->data_memory;
    else
      state->data_memory = budget;
  });
  return budget;
}

}  // namespace mox::internal
