#include "runtime/base/team.h"

#include <gtest/gtest.h>

#include <vector>

namespace mox {
namespace {

TEST(Team, ParallelForVisitsEveryElementOnce) {
  for (int threads : {1, 2, 3}) {
    Team team(threads);
    for (int64_t count : {0, 1, 2, 100, 1001}) {
      std::vector<int> visits(static_cast<size_t>(count));
      team.parallel_for(count, 10, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      for (int v : visits) EXPECT_EQ(v, 1);
    }
  }
}

TEST(Team, ChunkBordersDoNotDependOnTheNumberOfThreads) {
  std::vector<std::pair<int64_t, int64_t>> borders[2];
  for (int threads : {1, 2}) {
    auto& seen = borders[threads - 1];
    seen.resize(4);
    Team(threads).parallel_chunks(100, 30, [&](int64_t index, int64_t begin, int64_t end) {
      seen[static_cast<size_t>(index)] = {begin, end};
    });
  }
  EXPECT_EQ(borders[0], borders[1]);
  EXPECT_EQ(borders[0].back(), (std::pair<int64_t, int64_t>{90, 100}));
}

TEST(Team, IsEnteredForAWhile) {
  const Team outer(2), inner(3);
  const EnteredTeam in_outer(outer);
  EXPECT_EQ(entered_threads(), 2);
  {
    const EnteredTeam in_inner(inner);
    EXPECT_EQ(entered_threads(), 3);
  }
  EXPECT_EQ(entered_threads(), 2);
}

TEST(Team, AtLeastOneCoreIsAvailable) { EXPECT_GE(available_cores(), 1); }

}  // namespace
}  // namespace mox
