// What ranks take for one machine, and what they may use of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/resource_limits.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::HasSubstr;

class Machines : public TrainingTest {
 protected:
  static std::string program() { return MOX_BINARY_DIR "/bin/distributed_program"; }
};

// Each rank has a host name of its own, and the program looks whether all are local and share the cores.
TEST_F(Machines, OneThatHasTwoNamesIsOne) {
  std::vector<Words> ranks;
  for (const std::string name : {"node0", "node1"})
    ranks.push_back({"/usr/bin/unshare", "--uts", "/bin/bash", "-c", "hostname \"$0\"; exec \"$@\"", name,
                     program(), "--fault=functions"});
  if (run_process(Words(ranks[0].begin(), ranks[0].begin() + 2) + Words{"/bin/true"}).status != 0)
    GTEST_SKIP() << "needs the right to name a host";
  const ProcessResult result = run_process(job_of_commands(ranks));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("ranks: 2"));
}

// Two containers of one name: processes of their own, so machines of their own.
TEST_F(Machines, TwoThatHaveOneNameAreTwo) {
  const Words is_alone = {program(), "--fault=machine"};
  const Words command = Words{"/usr/bin/unshare", "--pid", "--fork", "--mount-proc"} + is_alone;
  if (run_process(Words{"/usr/bin/unshare", "--pid", "--fork", "--mount-proc", "/bin/true"}).status != 0)
    GTEST_SKIP() << "needs the right to make a namespace";
  const ProcessResult result = run_process(job_of_commands({command, is_alone}));
  expect_success(result);
  // Containers of one kernel have its cores together.
  const int cores = available_cores();
  for (const int rank : {0, 1})
    EXPECT_THAT(result.out, HasSubstr(fmt::format("rank {} is local rank 0 of 1 with {} cores", rank,
                                                  std::max(1, rank == 0 ? cores / 2 : cores - cores / 2))));
}

// A message is large enough to be read from the sender's memory: the gradient of a wide layer.
TEST_F(Machines, ProcessesThatMayNotReadEachOthersMemoryTrainQuietly) {
  const Words program = {"distributed_program", "--wide", "--log_every_n_steps=0", "--max_number_of_steps=20",
                         "--logical_replicas=2"};
  const ProcessResult result = run_process(Words{MOX_BINARY_DIR "/bin/without_ptrace"} +
                                           job_of(2, program + Words{"--train_url=" + log_dir_}));
  if (result.status == 77) GTEST_SKIP() << result.err;
  expect_success(result);
  const std::string said = result.out + result.err;
  EXPECT_THAT(said, testing::Not(HasSubstr("errno")));  // as Open MPI writes for each message
  const std::string sentence = "may not read each other's memory (Operation not permitted";
  EXPECT_NE(said.find(sentence), std::string::npos) << said;
  EXPECT_EQ(said.find(sentence), said.rfind(sentence)) << said;

  const std::string reading = fresh("reading");
  const ProcessResult free = run_process(job_of(2, program + Words{"--train_url=" + reading}));
  expect_success(free);
  EXPECT_THAT(free.out + free.err, testing::Not(HasSubstr("each other's memory")));
  EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(reading));
}

// A launcher that speaks PMIx, as srun does: its server is mpirun's, and Open MPI's own words are not there.
TEST_F(Machines, ALauncherThatSpeaksPmixStartsAJob) {
  const Words functions = {program(), "--fault=functions"};
  const auto job = [&](const Words& environment) {
    const Words command = Words{"/usr/bin/env", "-u", "OMPI_COMM_WORLD_SIZE"} + environment + functions;
    return run_process(job_of_commands({command, command}));
  };
  for (const Words& environment : {Words{"SLURM_STEP_NUM_TASKS=2", "SLURM_NTASKS=2"}, Words{"A=b"}}) {
    const ProcessResult result = job(environment);
    expect_success(result);
    EXPECT_THAT(result.out, HasSubstr("ranks: 2"));
  }
  const ProcessResult other = job({"SLURM_STEP_NUM_TASKS=3"});
  EXPECT_NE(other.status, 0);
  EXPECT_THAT(other.err, HasSubstr("the launcher has started 3 processes, but MPI connects 2"));
}

TEST_F(Machines, ALauncherWithoutAWayToConnectItsProcessesIsRefused) {
  const ProcessResult result =
      run_process({"/usr/bin/env", "WORLD_SIZE=2", "RANK=1", program(), "--train_url=" + log_dir_});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("error: this is one of 2 processes that torchrun or a launcher like it"));
  EXPECT_FALSE(std::filesystem::exists(log_dir_));
}

}  // namespace
}  // namespace mox
