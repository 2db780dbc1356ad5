// mox forecast, from the profile that a run has written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "moxing/job/forecast.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::HasSubstr;

class ForecastCommand : public TrainingTest {
 protected:
  // The profile of a run of so many ranks.
  static std::string profile_of(int ranks) {
    std::string path = fresh("profile") + ".json";
    expect_success(
        run_process(job_of(ranks, {"distributed_program", "--step_profile=" + path, "--log_every_n_steps=0",
                                   "--inter_mode=none", "--max_number_of_steps=10"})));
    return path;
  }
};

TEST_F(ForecastCommand, SaysWhatMoreNodesWouldGive) {
  const std::string path = profile_of(2);
  const StepProfile profile = read_step_profile(path);
  EXPECT_EQ(profile.source, "measured");
  EXPECT_EQ(profile.ranks, 2);
  EXPECT_EQ(profile.node_samples, 8);
  EXPECT_GT(profile.compute_s, 0);
  EXPECT_GT(profile.latency_s, 0);
  ASSERT_FALSE(profile.buckets.empty());

  const ProcessResult table = run_process({"mox", "forecast", path, "--nodes", "2,8", "--link", "1G,500M"});
  expect_success(table);
  EXPECT_THAT(table.out, testing::StartsWith("SIMULATED from '" + path + "' (times: measured)"));
  EXPECT_THAT(table.out, HasSubstr("sending: "));

  const ProcessResult lines =
      run_process({"mox", "forecast", path, "--nodes", "2,8", "--link", "1G,500M", "--json"});
  expect_success(lines);
  std::istringstream stream(lines.out);
  int count = 0;
  for (std::string line; std::getline(stream, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("simulated"), true);
    const Forecast expected =
        forecast_step(profile, json.at("nodes"),
                      {.bits_per_second = json.at("bits_per_second"), .latency_s = profile.latency_s});
    EXPECT_NEAR(json.at("step_s"), expected.step_s, 1e-9);
    EXPECT_EQ(json.at("limit"), expected.limit);
  }
  EXPECT_EQ(count, 4);
}

TEST_F(ForecastCommand, SaysThatOneRankShowsNothingOfSending) {
  const std::string path = profile_of(1);
  EXPECT_FALSE(read_step_profile(path).sending_work);
  const ProcessResult result = run_process({"mox", "forecast", path});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("sending: its work is not in this profile"));
}

TEST_F(ForecastCommand, RefusesWhatIsNoProfileAndNoLink) {
  const ProcessResult none = run_process({"mox", "forecast", "/nowhere"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("/nowhere"));
  const ProcessResult link = run_process({"mox", "forecast", profile_of(1), "--link", "fast"});
  EXPECT_EQ(link.status, 2);
  EXPECT_THAT(link.err, HasSubstr("expected a rate in bits a second such as 25G or 500M, got 'fast'"));
}

}  // namespace
}  // namespace mox
