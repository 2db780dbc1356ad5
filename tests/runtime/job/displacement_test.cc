#include "runtime/job/internal/displacement.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace mox::internal {
namespace {

constexpr uint32_t kFlood = 7, kRank = 8, kAnother = 9;

TEST(Displacement, LeavesThreeQuartersOfTheFilesToOthers) {
  EXPECT_EQ(most_strangers(1024), 256U);
  EXPECT_EQ(most_strangers(4096), 1024U);
  EXPECT_EQ(most_strangers(1 << 20), 1024U);
  EXPECT_EQ(most_strangers(RLIM_INFINITY), 1024U);
  EXPECT_EQ(most_strangers(3), 1U);
}

// The oldest are those of the ranks, whose handshake takes its time.
TEST(Displacement, WhoComesAgainAndAgainDisplacesHisOwn) {
  std::vector<uint32_t> sources = {kRank, kAnother, kRank};
  sources.insert(sources.end(), 50, kFlood);
  sources.push_back(kRank);
  std::minstd_rand chance(1);
  std::set<size_t> gone;
  for (int i = 0; i < 2000; ++i) gone.insert(whom_to_displace(sources, chance));
  EXPECT_EQ(gone.size(), 50U) << "each of his own may be the one";
  for (const size_t index : gone) EXPECT_EQ(sources[index], kFlood);
}

TEST(Displacement, OfSeveralCrowdsAnyOne) {
  std::minstd_rand chance(1);
  std::set<size_t> gone;
  for (int i = 0; i < 500; ++i)
    gone.insert(whom_to_displace(std::vector<uint32_t>{kFlood, kRank, kAnother, kRank, kFlood}, chance));
  EXPECT_EQ(gone, (std::set<size_t>{0, 1, 3, 4}));
  EXPECT_EQ(whom_to_displace(std::vector<uint32_t>{kRank}, chance), 0U);
}

}  // namespace
}  // namespace mox::internal
