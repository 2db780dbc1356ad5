// What a run makes of its options.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "moxing/config/flags.h"
#include "runtime/base/file.h"
#include "tests/moxing/config/config_testing.h"
#include "tests/moxing/small_run.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

// Of a run of thirty steps.
struct Recorded {
  int64_t lines = 0;  // of metrics.jsonl
  std::string configuration;
};

Recorded records_of(const std::vector<std::string>& flags, const ProgramDefaults& defaults = {}) {
  const ScopedConfiguration scope;
  InitOptions options{
      .program = "p", .arguments = {"--threads=1", "--log_level=error"}, .defaults = defaults};
  options.arguments.insert(options.arguments.end(), flags.begin(), flags.end());
  EXPECT_FALSE(configure(options));
  const std::string log_dir = fresh_directory("intervals");
  RunSpec spec = one_weight_run(log_dir, 30);
  spec.log_every_n_steps.reset();
  run_or_throw(spec);
  const std::string lines = read_file(log_dir + "/metrics.jsonl");
  return {std::ranges::count(lines, '\n'), read_file(log_dir + "/configuration.yaml")};
}

void expect_the_same_again(const Recorded& first, const ProgramDefaults& defaults) {
  const TemporaryFile file(first.configuration);
  EXPECT_EQ(records_of({"--config", file.path()}, defaults).lines, first.lines);
}

TEST(Intervals, InSecondsStayWithoutTheDefaultInStepsInTheFileOfTheRun) {
  const Recorded usual = records_of({}),
                 rare = records_of({"--save_summary_secs=1000", "--log_every_n_secs=1000"});
  EXPECT_GT(usual.lines, rare.lines);
  expect_the_same_again(usual, {});
  expect_the_same_again(rare, {});
}

TEST(Intervals, OfTheUserTakeThePlaceOfAProgramsStepsAndAProgramsOwnDoNot) {
  const ProgramDefaults steps = {{"save_summary_steps", 3}, {"log_every_n_steps", 0}};
  const Recorded usual = records_of({}, steps), rare = records_of({"--save_summary_secs=1000"}, steps);
  EXPECT_GE(usual.lines, 10);
  EXPECT_LT(rare.lines, 5);
  expect_the_same_again(rare, steps);
  const ProgramDefaults both = {
      {"save_summary_steps", 3}, {"save_summary_secs", 1000}, {"log_every_n_steps", 0}};
  EXPECT_EQ(records_of({}, both).lines, usual.lines);
  EXPECT_EQ(records_of({"--save_summary_steps=3", "--save_summary_secs=1000"}, steps).lines, usual.lines);
}

// Of a program that reads the file of data_url by itself.
TEST(Predictions, DoNotTakeThePlaceOfTheData) {
  const std::string log_dir = fresh_directory("predictions_of_settings"), data = log_dir + "/data.csv";
  const auto spec = [&](ModeKeys mode) {
    RunSpec spec = one_weight_run(log_dir, 2);
    spec.run_mode = mode;
    return spec;
  };
  {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=error", "--data_url=" + data});
    run_or_throw(spec(ModeKeys::TRAIN));
  }
  write_file_atomically(data, "1,2\n");
  const ScopedConfiguration configuration({"--threads=1", "--log_level=error", "--data_url=" + data,
                                           "--predictions=" + log_dir + "/../" +
                                               std::filesystem::path(log_dir).filename().string() +
                                               "/data.csv"});
  EXPECT_THAT(message_of_run<ConfigError>(spec(ModeKeys::PREDICT)),
              testing::HasSubstr("the file that data_url names, which would be replaced"));
  EXPECT_EQ(read_file(data), "1,2\n");
}

}  // namespace
}  // namespace mox
