// Which lines stay of a log that has grown too large.
#include "moxing/hooks/internal/thinned_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

namespace mox::internal {
namespace {

std::vector<LoggedLine> lines_of_steps(int64_t from, int64_t to, int64_t every = 1) {
  std::vector<LoggedLine> lines;
  for (int64_t step = from; step <= to; step += every) lines.push_back({100, step, true});
  return lines;
}

std::vector<LoggedLine> those_that_stay(const std::vector<LoggedLine>& lines, uint64_t most_bytes) {
  const std::vector<bool> stays = lines_that_stay(lines, most_bytes);
  std::vector<LoggedLine> result;
  for (size_t i = 0; i < lines.size(); ++i)
    if (stays[i]) result.push_back(lines[i]);
  EXPECT_LE(result.size() * 100, most_bytes);
  return result;
}

TEST(ThinnedLines, AreAllWhereThereIsRoom) {
  EXPECT_EQ(those_that_stay(lines_of_steps(0, 99), 10'000).size(), 100u);
  EXPECT_TRUE(lines_that_stay({}, 0).empty());
}

// Every age of the kind [a, 2a) has about as many.
TEST(ThinnedLines, AreAsManyOfEachDoublingOfTheAge) {
  for (const int64_t every : {1, 100}) {
    const auto stay = those_that_stay(lines_of_steps(0, 100'000 * every, every), 50'000);
    EXPECT_GT(stay.size(), 200u);
    EXPECT_EQ(stay.back().step, 100'000 * every);
    std::vector<int> of_age(18);
    for (const LoggedLine& line : stay)
      ++of_age[std::bit_width(static_cast<uint64_t>(100'000 - line.step / every))];
    for (int i = 7; i < 16; ++i) {
      EXPECT_GE(of_age[i], 10) << i;
      EXPECT_LE(of_age[i], 200) << i;
    }
  }
}

// A file is thinned again and again as it grows; that is the same as once.
TEST(ThinnedLines, AreTheSameAfterSeveralTimes) {
  std::vector<LoggedLine> kept;
  for (int64_t step = 0; step <= 50'000; ++step) {
    kept.push_back({100, step, true});
    if (kept.size() > 400) kept = those_that_stay(kept, 30'000);
  }
  EXPECT_LT(kept.front().step, 3'000);
  int64_t widest = 0;
  for (size_t i = 1; i < kept.size(); ++i) widest = std::max(widest, kept[i].step - kept[i - 1].step);
  EXPECT_LE(widest, 4'096);
}

TEST(ThinnedLines, EvaluationsGoOnlyWhereStepsAreNotEnough) {
  std::vector<LoggedLine> lines = lines_of_steps(0, 9'999);
  for (LoggedLine& line : lines) line.is_of_a_step = line.step % 10 != 0;
  const auto stays = lines_that_stay(lines, 110'000);  // 1,000 evaluations take 100,000
  for (size_t i = 0; i < lines.size(); i += 10) EXPECT_TRUE(stays[i]) << i;
  int64_t evaluations = 0;
  for (const LoggedLine& line : those_that_stay(lines, 50'000)) evaluations += !line.is_of_a_step;
  EXPECT_GE(evaluations, 100);
  EXPECT_LT(evaluations, 1'000);
}

// Of another run, before the lines of this one: they make what was written last no old line.
TEST(ThinnedLines, TheLastStaysBehindALaterStep) {
  std::vector<LoggedLine> lines = lines_of_steps(110, 110);
  lines.resize(1'000, LoggedLine{100, 10, true});
  lines.push_back({100, 11, true});
  const auto stay = those_that_stay(lines, 30'000);
  EXPECT_EQ(stay.back().step, 11);
  EXPECT_EQ(stay.front().step, 110);
}

TEST(ThinnedLines, WithoutAStepStay) {
  std::vector<LoggedLine> lines = lines_of_steps(0, 999);
  lines.insert(lines.begin(), {100, -1, true});
  EXPECT_TRUE(lines_that_stay(lines, 5'000)[0]);
}

}  // namespace
}  // namespace mox::internal
