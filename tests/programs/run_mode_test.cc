// Modes chosen by flags, the lines that scripts read, finished runs, and two runs at once.
#include <signal.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/engine/session/run.h"
#include "runtime/base/file.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

using testing::HasSubstr;
using testing::Not;
using RunMode = TrainingTest;

TEST_F(RunMode, TheLastEvaluationIsTheLastLineOfStdout) {
  const ProcessResult result = train("mnist_softmax", log_dir_, 20, {"--eval_every_n_steps=8"});
  expect_success(result);
  std::string last, last_evaluation;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line); last = line)
    if (line.starts_with("evaluation at global step 20:")) last_evaluation = line;
  std::smatch line, evaluation;
  ASSERT_TRUE(std::regex_match(last, line, std::regex("test accuracy: (0\\.[0-9]{3})[0-9]"))) << result.out;
  ASSERT_TRUE(std::regex_search(last_evaluation, evaluation, std::regex("accuracy: (0\\.[0-9]{3})")))
      << result.out;
  EXPECT_NEAR(std::stod(line[1]), std::stod(evaluation[1]), 0.0011);
}

TEST_F(RunMode, EvalFromAFlagGivesTheSameNumbers) {
  const ProcessResult trained = train("mnist_softmax", log_dir_, 20);
  const std::string before = latest_content(log_dir_);
  const ProcessResult evaluated = train("mnist_softmax", log_dir_, 20, {"--run_mode=eval"});
  expect_success(evaluated);
  EXPECT_EQ(test_lines(evaluated.out), test_lines(trained.out));
  const ProcessResult named =
      train("mnist_softmax", fresh("other"), 20, {"--run_mode=eval", "--checkpoint_path=" + log_dir_});
  EXPECT_EQ(test_lines(named.out), test_lines(trained.out));
  EXPECT_TRUE(latest_content(log_dir_) == before);
}

// A checkpoint that is named is the one that is measured, though log_dir has another.
TEST_F(RunMode, ANamedCheckpointWinsWhereNothingIsTrained) {
  const std::string other = fresh("other");
  const ProcessResult shorter = train("mnist_softmax", other, 10),
                      longer = train("mnist_softmax", log_dir_, 20);
  ASSERT_NE(test_lines(shorter.out), test_lines(longer.out));
  const ProcessResult named =
      train("mnist_softmax", log_dir_, 20, {"--run_mode=eval", "--checkpoint_path=" + other});
  EXPECT_EQ(test_lines(named.out), test_lines(shorter.out));
  expect_error(
      train("mnist_softmax", log_dir_, 20, {"--run_mode=eval", "--checkpoint_path=" + other + "/none"}),
      {"no checkpoint '" + other + "/none'"}, 2);
  const ProcessResult continued = train("mnist_softmax", log_dir_, 30, {"--checkpoint_path=" + other});
  expect_success(continued);
  EXPECT_THAT(continued.out + continued.err, HasSubstr("checkpoint_path '" + other + "' is not read"));
}

TEST_F(RunMode, ObjectStoresAreNotTakenForDirectories) {
  for (const char* name : {"ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID"}) ASSERT_EQ(std::getenv(name), nullptr);
  ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/at/all", 1);
  ::setenv("AWS_CONFIG_FILE", "/nowhere/at/all", 1);
  for (const std::string option : {"--train_url=", "--log_dir=", "--data_url=", "--checkpoint_path="}) {
    expect_error(train("mnist_softmax", log_dir_, 5, {option + "s3://bucket/out"}),
                 {"no credentials", "ACCESS_KEY_ID"}, 2);
    expect_error(train("mnist_softmax", log_dir_, 5, {option + "obs://bucket/out"}),
                 {"obs://bucket/out", "S3_ENDPOINT", "--file.endpoint"}, 2);
    expect_error(train("mnist_softmax", log_dir_, 5, {option + "gs://bucket/out"}),
                 {"gs://bucket/out", "expected a path, file://, s3:// or obs://"}, 2);
  }
  EXPECT_FALSE(std::filesystem::exists("s3:"));
}

TEST_F(RunMode, EvalAndPredictRefuseWithoutACheckpoint) {
  expect_error(train("mnist_softmax", log_dir_, 20, {"--run_mode=eval"}),
               {"run_mode eval needs trained variables", log_dir_, "--checkpoint_path"}, 2);
  EXPECT_FALSE(std::filesystem::exists(log_dir_)) << "nothing is made by reading";
  expect_error(
      train("mnist_softmax", log_dir_, 20, {"--run_mode=eval", "--checkpoint_path=" + log_dir_ + "/none"}),
      {"no checkpoint '" + log_dir_ + "/none'"}, 2);
  expect_error(train("mnist_softmax", log_dir_, 20, {"--run_mode=predict"}), {"there is no output_fn"}, 2);
}

TEST_F(RunMode, AFinishedLogDirIsSaidWithTheWayToGoOn) {
  const ProcessResult first = train("mnist_softmax", log_dir_, 20);
  const std::string before = latest_content(log_dir_), metrics = read_file(log_dir_ + "/metrics.jsonl");
  for (const Words& flags : {Words{}, Words{"--log_level=error"}}) {
    const ProcessResult again = train("mnist_softmax", log_dir_, 20, flags);
    expect_success(again);
    for (const char* says :
         {"nothing to train", "already holds step 20", "raise max_number_of_steps", "another log_dir"})
      EXPECT_THAT(again.out + again.err, HasSubstr(says));
    EXPECT_THAT(again.out + again.err, HasSubstr(log_dir_));
    EXPECT_EQ(test_lines(again.out), test_lines(first.out));
  }
  EXPECT_TRUE(latest_content(log_dir_) == before);
  EXPECT_EQ(read_file(log_dir_ + "/metrics.jsonl"), metrics) << "no evaluation is written twice";
  // The way to go on works.
  expect_success(train("mnist_softmax", log_dir_, 30));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 30);
}

TEST_F(RunMode, ATornLineOfMetricsIsDroppedWhenTheRunGoesOn) {
  const Words flags{"--save_summary_steps=1"};
  const std::string whole = fresh("whole");
  expect_success(train("mnist_softmax", whole, 20, flags + Words{"--eval_every_n_steps=10"}));
  expect_success(train("mnist_softmax", log_dir_, 10, flags + Words{"--eval_every_n_steps=10"}));
  const std::string path = log_dir_ + "/metrics.jsonl";
  write_file_atomically(path, read_file(path) + "{\"step\":11,\"loss\":1.5}\n{\"step\":12,\"los");
  expect_success(train("mnist_softmax", log_dir_, 20, flags + Words{"--eval_every_n_steps=10"}));
  EXPECT_EQ(metrics_without_times(log_dir_), metrics_without_times(whole));
}

TEST_F(RunMode, ASecondRunOnTheSameLogDirIsRefusedWhileTheFirstRuns) {
  constexpr int64_t kEndless = 1'000'000'000;
  Process first(training("mnist_softmax", log_dir_, kEndless, {"--save_model_steps=50"}));
  ASSERT_TRUE(
      first.wait_until([&] { return latest_checkpoint(log_dir_).has_value(); }));  // the evaluation needs one
  expect_error(train("mnist_softmax", log_dir_, 20),
               {"another run (process ", log_dir_, "choose another log_dir"});
  EXPECT_TRUE(first.running());
  expect_success(train("mnist_softmax", log_dir_, 20, {"--run_mode=eval"}));  // reading is no conflict
  expect_success(train("mnist_softmax", log_dir_, 20, {"--print_plan"}));
  first.send(SIGTERM);
  EXPECT_EQ(first.wait().status, kExitInterrupted);
  // The lock ended with its run, and a killed run leaves none either.
  const int64_t step = load_checkpoint(log_dir_).global_step;
  expect_success(train("mnist_softmax", log_dir_, step + 10));
  const std::string killed = fresh("killed");
  Process second(training("mnist_softmax", killed, kEndless));
  ASSERT_TRUE(second.wait_until([&] { return std::filesystem::exists(killed + "/checkpoint-0"); }));
  second.send(SIGKILL);
  second.wait();
  expect_success(train("mnist_softmax", killed, 20));
}

TEST_F(RunMode, PrintPlanLeavesNothing) {
  const ProcessResult result = train("mnist_softmax", log_dir_, 20, {"--print_plan"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("matmul"));
  EXPECT_THAT(result.err, Not(HasSubstr("no log_dir")));
  EXPECT_FALSE(std::filesystem::exists(log_dir_));
}

}  // namespace
}  // namespace mox
