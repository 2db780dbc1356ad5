// The same command gives the same bits, interrupted or not.
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/engine/session/run.h"
#include "tests/programs/killing.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

class Determinism : public TrainingTest {
 protected:
  struct Case {
    const char* program;
    int64_t steps;
    Words flags;
  };
  // The LeNet with few samples a batch: a step is long enough to be interrupted in.
  const Case softmax_{
      "mnist_softmax", 400, {"--save_model_steps=20", "--save_summary_steps=7", "--eval_every_n_steps=90"}};
  const Case lenet_{
      "fashion_lenet", 24, {"--save_model_steps=3", "--save_summary_steps=2", "--eval_every_n_steps=9"}};

  Words command(const Case& c, const std::string& log_dir, const Words& more = {}) const {
    return training(c.program, log_dir, c.steps, c.flags + more);
  }

  void expect_equal_runs(const Case& c) {
    expect_success(run_process(command(c, log_dir_)));
    const std::string again = fresh("again");
    expect_success(run_process(command(c, again)));
    EXPECT_EQ(run_process({"mox", "checkpoint", "digest", again}).out,
              run_process({"mox", "checkpoint", "digest", log_dir_}).out);
    EXPECT_TRUE(latest_content(again) == latest_content(log_dir_));
    EXPECT_EQ(metrics_without_times(again), metrics_without_times(log_dir_));
    const std::string readers = fresh("readers");
    expect_success(run_process(command(c, readers, {"--data_threads=3", "--prefetch_batches=5"})));
    EXPECT_TRUE(latest_content(readers) == latest_content(log_dir_))
        << "threads that read the data decide nothing";
    const std::string other = fresh("other_seed");
    expect_success(run_process(command(c, other, {"--seed=2"})));
    EXPECT_NE(checkpoint_digest(other), checkpoint_digest(log_dir_)) << "the seed decides";
  }

  void expect_killed_equals_whole(const Case& c, const Words& threads, int kills) {
    const ProcessResult whole = run_process(command(c, log_dir_, threads));
    expect_success(whole);
    const Killings seen = kill_and_restart(
        [&](const std::string& log_dir) { return command(c, log_dir, threads); }, log_dir_, whole, kills, 11);
    EXPECT_EQ(seen.kills, kills);
  }

  void expect_stopped_equals_whole(const Case& c, int signal, const char* name) {
    const ProcessResult whole = run_process(command(c, log_dir_));
    const std::string stopped = fresh("stopped");
    {
      Process process(command(c, stopped));
      ASSERT_TRUE(
          process.wait_until([&] { return std::ifstream(stopped + "/metrics.jsonl").peek() != EOF; }));
      process.send(signal);
      const ProcessResult result = process.wait();
      EXPECT_EQ(result.status, kExitInterrupted) << result.out << result.err;
      EXPECT_THAT(result.out, testing::HasSubstr(std::string("stopped because ") + name + " was received"));
      EXPECT_THAT(result.out,
                  testing::HasSubstr(std::string(name) + " ended this run without its last evaluation"));
      EXPECT_THAT(result.out, testing::Not(testing::HasSubstr("test accuracy")))
          << "no evaluation, no result";
    }
    const int64_t step = load_checkpoint(stopped).global_step;
    EXPECT_GT(step, 0);
    EXPECT_LT(step, c.steps);
    EXPECT_TRUE(names_are_clean(stopped));
    const ProcessResult rest = run_process(command(c, stopped));
    expect_success(rest);
    EXPECT_TRUE(latest_content(stopped) == latest_content(log_dir_));
    EXPECT_EQ(test_lines(rest.out), test_lines(whole.out));
  }

 private:
  static bool names_are_clean(const std::string& log_dir) {
    for (const auto& entry : std::filesystem::directory_iterator(log_dir))
      if (entry.path().extension() == ".saving" || entry.path().string().find(".tmp.") != std::string::npos)
        return false;
    return true;
  }
};

TEST_F(Determinism, AnotherNumberOfThreadsIsSaidWhenTheRunGoesOn) {
  expect_success(train("fashion_lenet", log_dir_, 2, {"--threads=1"}));
  const ProcessResult same = train("fashion_lenet", log_dir_, 4, {"--threads=1"});
  EXPECT_THAT(same.err, testing::Not(testing::HasSubstr("uninterrupted")));
  const ProcessResult other = train("fashion_lenet", log_dir_, 6, {"--threads=2"});
  expect_success(other);
  EXPECT_THAT(other.err, testing::HasSubstr("was computed by 1 thread(s) and is continued by 2"));
  EXPECT_THAT(other.err, testing::HasSubstr("--threads=1 makes it so"));
}

TEST_F(Determinism, SoftmaxTwiceIsBitwiseEqual) { expect_equal_runs(softmax_); }
TEST_F(Determinism, LenetTwiceIsBitwiseEqual) { expect_equal_runs(lenet_); }

TEST_F(Determinism, SoftmaxKilledAtTwentyMomentsEqualsTheWholeRun) {
  expect_killed_equals_whole(softmax_, {}, 20);
}
TEST_F(Determinism, LenetKilledEqualsTheWholeRun) { expect_killed_equals_whole(lenet_, {}, 8); }
TEST_F(Determinism, LenetOnOneThreadKilledEqualsTheWholeRun) {
  expect_killed_equals_whole(lenet_, {"--threads=1"}, 4);
}

TEST_F(Determinism, SoftmaxEndedBySigtermSavesAndGoesOn) {
  expect_stopped_equals_whole(softmax_, SIGTERM, "SIGTERM");
}
TEST_F(Determinism, LenetEndedBySigtermSavesAndGoesOn) {
  expect_stopped_equals_whole(lenet_, SIGTERM, "SIGTERM");
}
TEST_F(Determinism, SoftmaxEndedByCtrlCSavesAndGoesOn) {
  expect_stopped_equals_whole(softmax_, SIGINT, "SIGINT");
}
TEST_F(Determinism, SoftmaxEndedBySigusr1SavesAndGoesOn) {
  expect_stopped_equals_whole(softmax_, SIGUSR1, "SIGUSR1");
}

TEST_F(Determinism, SoftmaxEndedByADroppedConnectionSavesAndGoesOn) {
  expect_stopped_equals_whole(softmax_, SIGHUP, "SIGHUP");
}

}  // namespace
}  // namespace mox
