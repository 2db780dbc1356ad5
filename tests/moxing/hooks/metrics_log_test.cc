#include "moxing/hooks/internal/metrics_log.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace mox::internal {
namespace {

using ::testing::HasSubstr;

std::string step_line(int64_t step) { return "{\"step\":" + std::to_string(step) + ",\"loss\":0.5}\n"; }
std::string evaluation_line(int64_t step) {
  return "{\"step\":" + std::to_string(step) + ",\"evaluation\":true,\"loss\":0.25}\n";
}

class MetricsLogTest : public ::testing::Test {
 protected:
  std::string after_open(const std::string& content, int64_t step) {
    directory_.write("metrics.jsonl", content);
    log_.open(path(), step);
    return read_file(path());
  }
  std::string path() const { return directory_.file("metrics.jsonl"); }

  TemporaryDirectory directory_;
  MetricsLog log_;
};

TEST_F(MetricsLogTest, StepsAfterTheOneGoneOnFromAreCutOff) {
  EXPECT_EQ(after_open(step_line(1) + step_line(2) + step_line(3), 2), step_line(1) + step_line(2));
  EXPECT_EQ(after_open(step_line(1) + step_line(2), 0), "");
  EXPECT_EQ(after_open(step_line(1) + step_line(2), 7), step_line(1) + step_line(2));
  EXPECT_EQ(after_open("", 7), "");
}

TEST_F(MetricsLogTest, WhatIsNoWholeLineGoes) {
  EXPECT_EQ(after_open(step_line(1) + "{\"step\":\"two\"}\nnonsense\n" + "{\"step\":1,\"lo", 1),
            step_line(1));
  EXPECT_EQ(after_open("\n\n", 1), "");
}

// A checkpoint that was evaluated later has its line behind those of steps that go.
TEST_F(MetricsLogTest, EvaluationsOfStepsThatStayAreKept) {
  EXPECT_EQ(
      after_open(step_line(1) + evaluation_line(1) + step_line(5) + evaluation_line(5) + evaluation_line(2),
                 4),
      step_line(1) + evaluation_line(1) + evaluation_line(2));
  EXPECT_EQ(log_.evaluated_step(), 2);
  EXPECT_EQ(after_open(step_line(2) + evaluation_line(4) + step_line(4), 4),
            step_line(2) + evaluation_line(4) + step_line(4));
  EXPECT_EQ(log_.evaluated_step(), 4);
  EXPECT_EQ(after_open(step_line(2), 4), step_line(2));
  EXPECT_EQ(log_.evaluated_step(), -1);
}

// It was read, parsed and written whole at each start.
TEST_F(MetricsLogTest, ReadsNoMoreThanTheEnd) {
  std::string content = "this line is not looked at\n";
  for (int64_t step = 1; step <= 20'000; ++step) content += step_line(step);
  const std::string kept = content;
  for (int64_t step = 20'001; step <= 30'000; ++step) content += step_line(step);
  EXPECT_EQ(after_open(content, 20'000), kept);
}

TEST_F(MetricsLogTest, GoesOnBehindWhatStays) {
  after_open(step_line(1) + step_line(2), 1);
  log_.write({{"step", 2}, {"loss", 0.5}});
  EXPECT_EQ(read_file(path()), step_line(1) + step_line(2));
}

// The steps of the lines of a file, of steps or of evaluations.
std::vector<int64_t> steps_in(const std::string& content, bool of_evaluations) {
  std::vector<int64_t> steps;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    const auto parsed = nlohmann::json::parse(line);
    if (parsed.contains("evaluation") == of_evaluations) steps.push_back(parsed["step"]);
  }
  EXPECT_TRUE(std::ranges::is_sorted(steps));
  return steps;
}
int64_t steps_below(const std::vector<int64_t>& steps, int64_t step) {
  return std::ranges::count_if(steps, [&](int64_t other) { return other < step; });
}

TEST_F(MetricsLogTest, StaysBoundedWithFewLinesOfWhatIsOld) {
  constexpr uint64_t kMostBytes = 10'000;
  MetricsLog log(kMostBytes);
  log.open(path(), 0);
  for (int64_t step = 1; step <= 20'000; ++step) {
    log.write({{"step", step}, {"loss", 0.5}});
    if (step % 200 == 0) log.write({{"step", step}, {"evaluation", true}});
  }
  const std::string content = read_file(path());
  EXPECT_LE(content.size(), kMostBytes);
  EXPECT_EQ(steps_in(content, true).size(), 100u);
  const std::vector<int64_t> steps = steps_in(content, false);
  EXPECT_LT(steps.front(), 2'000);
  EXPECT_GE(steps_below(steps, 10'000), 4);
  EXPECT_GE(steps_below(steps, 19'000), 10);
  EXPECT_THAT(content, HasSubstr(step_line(19'999) + step_line(20'000)));
}

TEST_F(MetricsLogTest, StaysBoundedWhereAllAreEvaluations) {
  constexpr uint64_t kMostBytes = 10'000;
  MetricsLog log(kMostBytes);
  log.open(path(), 0);
  for (int64_t step = 1; step <= 20'000; ++step)
    log.write({{"step", step}, {"evaluation", true}, {"loss", 0.25}});
  const std::string content = read_file(path());
  EXPECT_LE(content.size(), kMostBytes);
  const std::vector<int64_t> steps = steps_in(content, true);
  EXPECT_LT(steps.front(), 2'000);
  EXPECT_GE(steps_below(steps, 10'000), 4);
  EXPECT_THAT(content, testing::EndsWith(evaluation_line(19'999) + evaluation_line(20'000)));
}

// Of an earlier version, or another limit.
TEST_F(MetricsLogTest, AFileThatIsFarTooLargeIsWithinTheLimitAtOnce) {
  std::string content;
  for (int64_t step = 1; step <= 2'000; ++step) content += step_line(step);
  directory_.write("metrics.jsonl", content);
  MetricsLog log(10'000);
  log.open(path(), 2'000);
  log.write({{"step", 2'001}, {"loss", 0.5}});
  EXPECT_LE(read_file(path()).size(), 10'000u);
}

TEST_F(MetricsLogTest, ALineThatNobodyHasWrittenIsRefusedByName) {
  directory_.write("metrics.jsonl", step_line(1));
  std::filesystem::resize_file(path(), uint64_t{1} << 40);  // a hole
  EXPECT_THAT(message_of<DataError>([&] { log_.open(path(), 1); }),
              HasSubstr("metrics.jsonl' has a line of more"));
}

TEST_F(MetricsLogTest, LinesOfSeveralBlocksAreWhole) {
  const std::string text(100'000, 'x');
  const std::string content =
      "{\"step\":1,\"text\":\"" + text + "\"}\n{\"step\":2,\"text\":\"" + text + "\"}\n";
  EXPECT_EQ(after_open(content + step_line(3), 2), content);
}

TEST_F(MetricsLogTest, ALinkInItsPlaceIsNotFollowed) {
  const std::string elsewhere = directory_.write("elsewhere", "kept");
  std::filesystem::create_symlink(elsewhere, path());
  EXPECT_THROW(log_.open(path(), 0), IoError);
  EXPECT_EQ(read_file(elsewhere), "kept");
}

// What this user alone may read would be in a file that others may.
TEST_F(MetricsLogTest, ALinkThatComesInItsPlaceIsNotWrittenAnew) {
  const std::string secret = directory_.write("secret", "a key\n");
  MetricsLog log(1'000);
  log.open(path(), 0);
  log.write({{"step", 1}, {"loss", 0.5}});
  std::filesystem::remove(path());
  std::filesystem::create_symlink(secret, path());
  for (int64_t step = 2; step <= 200; ++step) log.write({{"step", step}, {"loss", 0.5}});
  EXPECT_FALSE(std::filesystem::is_symlink(path()));
  EXPECT_THAT(read_file(path()), testing::Not(HasSubstr("a key")));
  EXPECT_EQ(read_file(secret), "a key\n");
}

}  // namespace
}  // namespace mox::internal
