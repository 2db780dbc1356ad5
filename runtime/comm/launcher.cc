#include "runtime/comm/launcher.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox {
namespace {

// A launcher whose processes have no PMIx: the variable with their number, that with this one's, the words
// for both, and the way out.
struct Launcher {
  const char *size, *rank, *name, *instead;
};
constexpr Launcher kLaunchers[] = {
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun of Slurm, without PMIx",
     "use srun --mpi=pmix, or mox launch (or mpirun) inside of the allocation"},
    {"PMI_SIZE", "PMI_RANK", "the mpirun of MPICH, of Intel MPI or of another MPI than Open MPI",
     "use mox launch, or Open MPI's mpirun"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "the launcher of MVAPICH",
     "use mox launch, or Open MPI's mpirun"},
    {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "jsrun", "use mox launch, or Open MPI's mpirun"},
    {"HOROVOD_SIZE", "HOROVOD_RANK", "horovodrun without MPI",
     "use mox launch; horovod's words stay as they are"},
    {"MS_WORKER_NUM", "MS_NODE_ID", "msrun of MindSpore, or a cluster of its kind",
     "use mox launch -n NUMBER on one machine, mox launch --hosts FILE on several"},
    {"RANK_SIZE", "RANK_ID", "a launcher of Ascend's", "use mox launch --rank-table FILE"},
    {"WORLD_SIZE", "RANK", "torchrun or a launcher like it",
     "use mox launch -n NUMBER on one machine, mox launch --hosts FILE on several"}};

std::optional<int> number_in(const char* name) {
  const char* text = std::getenv(name);
  if (!text || !*text) return std::nullopt;
  const std::string_view digits = text;
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0)
    throw InvalidArgument(
        fmt::format("{} is '{}' in the environment, not a number of processes", name, text));
  return number;
}

[[noreturn]] void refuse(const Launcher& launcher, const char* size, int ranks) {
  const char* rank = std::getenv(launcher.rank);
  throw FailedPrecondition(fmt::format(
      "this is one of {} processes that {} has started ({}={}{}), but they have no way to find each other: "
      "each would believe to be alone and train by itself. To train together {}; if this process is to be "
      "alone, unset {}",
      ranks, launcher.name, size, ranks, rank ? fmt::format(", {}={}", launcher.rank, rank) : "",
      launcher.instead, size));
}

}  // namespace

int launched_ranks() {
  if (const auto ranks = number_in("OMPI_COMM_WORLD_SIZE")) {
    if (*ranks < 1)
      throw InvalidArgument("OMPI_COMM_WORLD_SIZE is 0 in the environment, not a number of processes");
    return *ranks;
  }
  const auto tasks_of_step = number_in("SLURM_STEP_NUM_TASKS");
  if (std::getenv("PMIX_RANK") && std::getenv("PMIX_NAMESPACE"))
    return tasks_of_step.value_or(kRanksKnownToMpi);
  for (const Launcher& launcher : kLaunchers)
    if (const int ranks = number_in(launcher.size).value_or(1); ranks > 1)
      refuse(launcher, launcher.size, ranks);
  // A batch script of Slurm has the number of tasks as well, and is one process: task 0 without a step.
  const int tasks = number_in("SLURM_NTASKS").value_or(1);
  if (tasks > 1 && !tasks_of_step) {
    if (number_in("SLURM_PROCID").value_or(0) > 0 || std::getenv("SLURM_STEP_ID"))
      refuse(kLaunchers[0], "SLURM_NTASKS", tasks);
    log_warning(
        fmt::format("Slurm has given this job {} tasks, and this process is alone in it; {} to train on all",
                    tasks, kLaunchers[0].instead));
  }
  return 1;
}

}  // namespace mox
