// Evaluations and predictions on any number of ranks: the same bits, the same file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "moxing/engine/session/run.h"
#include "runtime/base/file.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RanksThatPredict : public TrainingTest {
 protected:
  RanksThatPredict() { expect_success(run_process(program({"--max_number_of_steps=10"}))); }

  Words program(const Words& flags) const {
    return Words{"distributed_program", "--train_url=" + log_dir_, "--log_every_n_steps=0", "--threads=1"} +
           flags;
  }
};

TEST_F(RanksThatPredict, MetricsHaveTheSameBitsOnAnyNumberAndWithAnyBatchSize) {
  std::string expected;
  for (const int ranks : {1, 2, 4})
    for (const char* batch : {"7", "11", "64", "300"}) {
      expect_success(run_process(
          job_of(ranks, program({"--run_mode=eval", std::string("--eval_batch_size=") + batch}))));
      // Numbers are written with all of their digits.
      auto metrics = nlohmann::json::parse(read_file(log_dir_ + "/results.json")).at("eval").at("metrics");
      metrics.erase("loss");  // the mean of means in float32, which depends on the batches
      EXPECT_EQ(metrics.size(), 3U) << metrics;
      if (expected.empty()) expected = metrics.dump();
      EXPECT_EQ(metrics.dump(), expected) << ranks << " ranks, batches of " << batch;
    }
}

TEST_F(RanksThatPredict, FilesAreTheSameOnAnyNumber) {
  for (const char* ending : {".csv", ".jsonl", ".npz"}) {
    std::string expected;
    for (const int ranks : {1, 2, 4}) {
      const std::string file = fresh("predictions") + ending;
      const ProcessResult result = run_process(
          job_of(ranks, program({"--run_mode=predict", "--batch_size=11", "--predictions=" + file})));
      expect_success(result);
      EXPECT_THAT(result.out, HasSubstr("predictions of 300 samples: " + file));
      const std::string content = read_file(file);
      if (expected.empty()) expected = content;
      EXPECT_TRUE(content == expected) << ending << " of " << ranks << " ranks";
    }
    if (std::string(ending) == ".csv") {
      EXPECT_EQ(std::ranges::count(expected, '\n'), 301);
    }
  }
}

TEST_F(RanksThatPredict, EachMayKeepItsShare) {
  const ProcessResult result =
      run_process(job_of(2, program({"--run_mode=predict", "--batch_size=70", "--print_predictions",
                                     "--gather_predictions=false"})));
  expect_success(result);
  for (const char* line : {"rank 0: 70 from 0\n", "rank 1: 70 from 70\n", "rank 0: 70 from 140\n",
                           "rank 1: 70 from 210\n", "rank 0: 20 from 280\n"})
    EXPECT_THAT(result.out, HasSubstr(line));
  const ProcessResult gathered =
      run_process(job_of(2, program({"--run_mode=predict", "--batch_size=70", "--print_predictions"})));
  expect_success(gathered);
  EXPECT_THAT(gathered.out, HasSubstr("rank 0: 70 from 70\nrank 0: 70 from 140\nrank 0: 70 from 210\n"));
}

TEST_F(RanksThatPredict, AFileThatCannotBeMadeEndsAllOfThem) {
  const std::string file = fresh("no") + "/such/p.csv";
  const ProcessResult result =
      run_process(job_of(2, program({"--run_mode=predict", "--batch_size=11", "--predictions=" + file})));
  EXPECT_EQ(result.status, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("predictions is '" + file + "', which cannot be written"));
}

// To one of the ranks, in its first batch.
TEST_F(RanksThatPredict, EndInGoodOrderAfterASignal) {
  const Words signalled = {"--fault=terminate", "--fault_step=10", "--fault_rank=1"};
  const std::string file = fresh("interrupted") + ".csv";
  for (const char* gathers : {"true", "false"}) {
    const ProcessResult predicted = run_process(
        job_of(2, program({"--run_mode=predict", "--batch_size=11"}) + signalled +
                      Words{std::string("--gather_predictions=") + gathers} +
                      (gathers[0] == 't' ? Words{"--predictions=" + file} : Words{"--print_predictions"})));
    EXPECT_EQ(predicted.status, kExitInterrupted) << predicted.err;
    EXPECT_THAT(predicted.out, HasSubstr("interrupted by a signal to another rank after 22 samples"));
  }
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
  const ProcessResult evaluated =
      run_process(job_of(2, program({"--run_mode=eval", "--eval_batch_size=11"}) + signalled));
  EXPECT_EQ(evaluated.status, kExitInterrupted) << evaluated.err;
  EXPECT_THAT(evaluated.err, AllOf(HasSubstr("rank 1 (host "),
                                   HasSubstr(") was interrupted by SIGTERM after 11 samples of this rank"),
                                   HasSubstr("the same command evaluates again"), Not(HasSubstr("failed")),
                                   Not(HasSubstr("was lost"))));
  EXPECT_FALSE(std::filesystem::exists(log_dir_ + "/results.json"));
}

}  // namespace
}  // namespace mox
