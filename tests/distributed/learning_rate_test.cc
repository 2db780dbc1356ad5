// scale_learning_rate in jobs of several ranks; in one process: tests/moxing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "moxing/checkpoint/checkpoint.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::HasSubstr;

constexpr double kGivenRate = 0.05;  // distributed_program's

class ScaledRates : public TrainingTest {
 protected:
  static ProcessResult train_on(const TestPlacement& placement, const std::string& log_dir,
                                const Words& flags) {
    return run_process(job_of(
        placement.ranks, Words{"distributed_program", "--train_url=" + log_dir, "--max_number_of_steps=3",
                               "--log_every_n_steps=0", "--save_summary_steps=1", "--threads=2",
                               "--num_devices=" + std::to_string(placement.devices)} +
                             flags));
  }

  // Of the steps in metrics.jsonl.
  static std::vector<double> rates(const std::string& log_dir) {
    std::vector<double> result;
    std::ifstream file(log_dir + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);)
      if (const auto json = nlohmann::json::parse(line); json.contains("learning_rate"))
        result.push_back(json.at("learning_rate").get<double>());
    return result;
  }
};

TEST_F(ScaledRates, CountTheReplicasOfAllRanks) {
  for (const auto& [scale, factor, said] :
       {std::tuple{"linear", 2.0, "the learning rate is 2 times what is given"},
        {"sqrt", std::sqrt(2.0), "the learning rate is 1.414"},
        {"none", 1.0, "the learning rate is as given"}})
    for (const TestPlacement& placement : {TestPlacement{2, 1}, {1, 2}}) {
      SCOPED_TRACE(placement.name() + ' ' + scale);
      const std::string log_dir = fresh(placement.name() + scale);
      const ProcessResult result =
          train_on(placement, log_dir, {"--scale_learning_rate=" + std::string(scale)});
      expect_success(result);
      EXPECT_THAT(result.err, HasSubstr(said));
      const std::vector<double> of_steps = rates(log_dir);
      ASSERT_EQ(of_steps.size(), 3U);
      for (const double rate : of_steps) EXPECT_NEAR(rate, kGivenRate * factor, 1e-6 * kGivenRate);
    }
}

// What hooks see is what the optimizer applies.
TEST_F(ScaledRates, AreThoseOfARunThatIsGivenThem) {
  const std::string scaled = fresh("scaled"), given = fresh("given");
  expect_success(train_on({2, 1}, scaled, {"--logical_replicas=4", "--scale_learning_rate=sqrt"}));
  expect_success(train_on({2, 1}, given, {"--logical_replicas=4", "--optimizer.learning_rate=0.1"}));
  EXPECT_EQ(checkpoint_digest(scaled), checkpoint_digest(given));
}

}  // namespace
}  // namespace mox
