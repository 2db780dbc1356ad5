// What ranks take for one machine, and what they may use of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace mox
