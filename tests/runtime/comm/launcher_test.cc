// Who has started this process, by what launchers leave in the environment.
#include "runtime/comm/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "runtime/base/error.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

using testing::HasSubstr;

// Nothing but these variables of the launchers, for a while.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_NAMESPACE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
          "SLURM_PROCID", "SLURM_STEP_ID", "PMI_SIZE", "PMI_RANK", "MV2_COMM_WORLD_SIZE", "WORLD_SIZE",
          "RANK", "JSM_NAMESPACE_SIZE", "HOROVOD_SIZE", "MS_WORKER_NUM", "RANK_SIZE"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    names_ = variables;
  }
  ~Environment() {
    for (const auto& [name, value] : names_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> names_, before_;
};

int ranks_with(const std::map<std::string, std::string>& variables) {
  const Environment environment(variables);
  return launched_ranks();
}

std::string refusal_with(const std::map<std::string, std::string>& variables) {
  const Environment environment(variables);
  return message_of<FailedPrecondition>([] { launched_ranks(); });
}

TEST(Launcher, NoneAndThoseThatAreKnown) {
  EXPECT_EQ(ranks_with({}), 1);
  EXPECT_EQ(ranks_with({{"OMPI_COMM_WORLD_SIZE", "4"}}), 4);
  // mpirun within an allocation, or within a job of a platform.
  EXPECT_EQ(ranks_with({{"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "1"}}), 4);
  EXPECT_EQ(ranks_with({{"OMPI_COMM_WORLD_SIZE", "2"}, {"WORLD_SIZE", "8"}, {"PMIX_RANK", "1"}}), 2);
  // srun --mpi=pmix, and another launcher that speaks PMIx.
  EXPECT_EQ(ranks_with({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "slurm.7.0"}, {"SLURM_STEP_NUM_TASKS", "3"}}),
            3);
  EXPECT_EQ(ranks_with({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "prun@1"}}), kRanksKnownToMpi);
}

TEST(Launcher, OneThatCannotConnectItsProcessesIsRefusedByName) {
  EXPECT_THAT(refusal_with({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "1"}}),
              testing::AllOf(HasSubstr("one of 4 processes that srun of Slurm, without PMIx has started "
                                       "(SLURM_STEP_NUM_TASKS=4, SLURM_PROCID=1)"),
                             HasSubstr("use srun --mpi=pmix")));
  EXPECT_THAT(refusal_with({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "1"}}), HasSubstr("SLURM_NTASKS=4"));
  EXPECT_THAT(refusal_with({{"PMI_SIZE", "4"}, {"PMI_RANK", "0"}}), HasSubstr("MPICH"));
  EXPECT_THAT(refusal_with({{"WORLD_SIZE", "2"}, {"RANK", "1"}}),
              testing::AllOf(HasSubstr("torchrun"), HasSubstr("WORLD_SIZE=2, RANK=1"),
                             HasSubstr("use mox launch"), HasSubstr("unset WORLD_SIZE")));
  for (const char* name :
       {"MV2_COMM_WORLD_SIZE", "JSM_NAMESPACE_SIZE", "HOROVOD_SIZE", "MS_WORKER_NUM", "RANK_SIZE"})
    EXPECT_THAT(refusal_with({{name, "2"}}), HasSubstr(name));
}

TEST(Launcher, OfOneProcessIsNoMatter) {
  EXPECT_EQ(ranks_with({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}}), 1);
  EXPECT_EQ(ranks_with({{"PMI_SIZE", "1"}}), 1);
  EXPECT_EQ(ranks_with({{"WORLD_SIZE", "1"}, {"RANK", "0"}}), 1);
  // A shell that Slurm has started once for four tasks; a batch script is the same.
  EXPECT_EQ(ranks_with({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"}}), 1);
  EXPECT_EQ(ranks_with({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}), 1);
}

TEST(Launcher, NumbersThatAreNone) {
  for (const char* text : {"many", "-3", "4x", "99999999999", "0"}) {
    const Environment environment(std::map<std::string, std::string>{{"OMPI_COMM_WORLD_SIZE", text}});
    EXPECT_THROW(launched_ranks(), InvalidArgument) << text;
  }
}

}  // namespace
}  // namespace mox
