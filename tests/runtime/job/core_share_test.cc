// Which cores the ranks of a job take, on one machine, on two of one name, in containers.
#include "runtime/job/internal/core_share.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/temporary_directory.h"

namespace mox::internal {
namespace {

RankCores rank_on(const std::string& kernel, const std::string& machine, int first, int last,
                  double quota = 0) {
  RankCores rank{.kernel = kernel, .machine = machine};
  CPU_ZERO(&rank.allowed);
  for (int core = first; core < last; ++core) CPU_SET(core, &rank.allowed);
  rank.quota = quota;
  return rank;
}

// "0-3": the first and the last core of the share.
std::string share(const std::vector<RankCores>& ranks, int own) {
  const cpu_set_t cores = share_of_cores(ranks, own);
  int first = -1, last = -1;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores)) continue;
    if (first < 0) first = core;
    last = core;
  }
  EXPECT_EQ(CPU_COUNT(&cores), last - first + 1);
  return std::to_string(first) + "-" + std::to_string(last);
}

TEST(CoreShare, OfRanksOfOneMachine) {
  const std::vector<RankCores> ranks(3, rank_on("k", "m", 0, 8));
  EXPECT_EQ(share(ranks, 0), "0-1");
  EXPECT_EQ(share(ranks, 1), "2-4");
  EXPECT_EQ(share(ranks, 2), "5-7");
  EXPECT_EQ(share({rank_on("k", "m", 0, 8)}, 0), "0-7");
}

TEST(CoreShare, OfFewerCoresThanRanksIsOneEach) {
  const std::vector<RankCores> ranks(5, rank_on("k", "m", 0, 2));
  EXPECT_EQ(share(ranks, 0), "0-0");
  EXPECT_EQ(share(ranks, 4), "1-1");
}

TEST(CoreShare, OfTwoMachinesIsEachOnesOwn) {
  EXPECT_EQ(share({rank_on("k1", "m1", 0, 4), rank_on("k2", "m2", 0, 4)}, 1), "0-3");
}

TEST(CoreShare, OfTwoContainersOfOneMachine) {
  EXPECT_EQ(share({rank_on("k", "m1", 0, 4), rank_on("k", "m2", 0, 4)}, 0), "0-1");
  EXPECT_EQ(share({rank_on("k", "m1", 0, 4), rank_on("k", "m2", 0, 4)}, 1), "2-3");
  // With cores of their own.
  EXPECT_EQ(share({rank_on("k", "m1", 0, 4), rank_on("k", "m2", 4, 8)}, 1), "4-7");
}

TEST(CoreShare, OfRanksThatAreBoundIsWhatTheyAreBoundTo) {
  // Two on each of two sockets.
  const std::vector<RankCores> ranks = {rank_on("k", "m", 0, 4), rank_on("k", "m", 0, 4),
                                        rank_on("k", "m", 4, 8), rank_on("k", "m", 4, 8)};
  EXPECT_EQ(share(ranks, 1), "2-3");
  EXPECT_EQ(share(ranks, 2), "4-5");
}

TEST(CoreShare, IsNoMoreThanThePartOfTheQuota) {
  const std::vector<RankCores> ranks(2, rank_on("k", "m", 0, 16, 3));
  EXPECT_EQ(share(ranks, 0), "0-1");
  EXPECT_EQ(share(ranks, 1), "8-9");
  EXPECT_EQ(share({rank_on("k", "m", 0, 4, 0.4)}, 0), "0-0");
}

TEST(CoreShare, TravelsAsBytes) {
  const RankCores rank = rank_on("kernel", "kernel net:[1] pid:[2]", 3, 9, 2.5);
  const RankCores arrived = RankCores::from_bytes(rank.to_bytes());
  EXPECT_EQ(arrived.kernel, rank.kernel);
  EXPECT_EQ(arrived.machine, rank.machine);
  EXPECT_TRUE(CPU_EQUAL(&arrived.allowed, &rank.allowed));
  EXPECT_EQ(arrived.quota, 2.5);
}

TEST(Machine, IsWhatItIsAndNotItsName) {
  const TemporaryDirectory root;
  root.write("proc/sys/kernel/random/boot_id", "6c1f\n");
  root.write("proc/self/ns/made", "");
  std::filesystem::create_symlink("net:[1]", root.path() + "/proc/self/ns/net");
  std::filesystem::create_symlink("pid:[2]", root.path() + "/proc/self/ns/pid");
  const Machine machine = this_machine(root.path());
  EXPECT_EQ(machine.kernel, "6c1f");
  EXPECT_EQ(machine.network, "6c1f net:[1]");
  EXPECT_EQ(machine.id, "6c1f net:[1] pid:[2]");
  EXPECT_EQ(machine.name, this_machine().name);
  const TemporaryDirectory nothing;  // a system without all this
  EXPECT_EQ(this_machine(nothing.path() + "/none").kernel, machine.name);
}

}  // namespace
}  // namespace mox::internal
