// mox launch: jobs that are asked to stop.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/engine/session/run.h"
#include "tests/distributed/launch.h"

namespace mox {
namespace {

using testing::HasSubstr;

// mpirun passes a signal on to those that it has started by then, and none before.
TEST_F(Launch, AWishToStopInTheFirstMomentsIsNotLost) {
  for (const int milliseconds : {0, 20, 50, 100, 200, 400}) {
    const std::string log_dir = fresh("early");
    Process job(launch({"-n", "2"}, {"distributed_program", "--train_url=" + log_dir, "--log_every_n_steps=0",
                                     "--max_number_of_steps=1000000", "--save_summary_steps=0"}));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    job.send(SIGTERM);
    const ProcessResult result = job.wait(90);
    EXPECT_FALSE(result.timed_out) << "after " << milliseconds << " ms";
    // Before `mox` itself runs its first lines, it ends by the signal.
    if (result.signal != SIGTERM) {
      EXPECT_EQ(result.status, kExitInterrupted) << result.err;
    }
  }
}

TEST_F(Launch, ASignalToTheLauncherSavesAndEndsTheJob) {
  Process job(launch({"-n", "2", "--max-restarts", "5"},
                     {"distributed_program", "--train_url=" + log_dir_, "--log_every_n_steps=0",
                      "--max_number_of_steps=1000000", "--save_model_steps=10", "--save_summary_steps=0"}));
  ASSERT_TRUE(job.wait_until([&] {
    const auto latest = latest_checkpoint(log_dir_);
    return latest && !latest->ends_with("checkpoint-0");
  }));
  job.send(SIGTERM);
  const ProcessResult result = job.wait(60);
  EXPECT_EQ(result.status, kExitInterrupted) << result.err;
  // Both ranks get it; which one does so first is open.
  EXPECT_THAT(result.out,
              testing::ContainsRegex("stopped because (SIGUSR1 was received|rank 1 was asked to stop)"));
  expect_all_intact(log_dir_, 1);
}

TEST_F(Launch, AJobThatWasAskedToStopIsNotStartedAgain) {
  const ProcessResult result = run_process(launch(
      {"-n", "2", "--max-restarts", "5"}, {"distributed_program", "--train_url=" + log_dir_,
                                           "--log_every_n_steps=0", "--fault=terminate", "--fault_rank=1"}));
  EXPECT_EQ(result.status, kExitInterrupted) << result.err;
  EXPECT_THAT(result.err, testing::Not(HasSubstr("restart")));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 6);
}

// The signal is repeated while the job starts, and ranks without a save are through with their run by then.
TEST_F(Launch, ARankThatIsThroughOutlivesTheSaveOfRankZero) {
  Process job(
      launch({"-n", "2"}, {"distributed_program", "--train_url=" + log_dir_, "--log_every_n_steps=0",
                           "--max_number_of_steps=1000000", "--save_model_steps=0", "--save_model_secs=0",
                           "--save_summary_steps=0", "--fault=slow_save", "--fault_rank=0"}));
  ASSERT_TRUE(job.wait_until([&] { return job.said("global step 3 is done"); }));
  job.send(SIGTERM);
  const ProcessResult result = job.wait(60);
  EXPECT_EQ(result.status, kExitInterrupted) << result.err;
  EXPECT_THAT(result.err, testing::Not(HasSubstr("was lost")));
  EXPECT_GT(load_checkpoint(log_dir_).global_step, 0);
}

}  // namespace
}  // namespace mox
