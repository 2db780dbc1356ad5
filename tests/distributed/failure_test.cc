// A job of several ranks never hangs and never lies: whatever happens to one rank ends all, with a message
// that names it.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/engine/session/run.h"
#include "tests/distributed/job.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"

namespace mox {
namespace {

using testing::HasSubstr;

class Failures : public TrainingTest {
 protected:
  // A job of `ranks` whose rank `rank` has a fault after five steps.
  ProcessResult run_with(const std::string& fault, int ranks, int rank, const Words& flags = {}) const {
    return Process(job_of(ranks, Words{"distributed_program", "--train_url=" + log_dir_, "--fault=" + fault,
                                       "--fault_rank=" + std::to_string(rank), "--save_model_steps=2",
                                       "--log_every_n_steps=0"} +
                                     flags))
        .wait(60);
  }

  static int errors_in(const std::string& text) {
    int errors = 0;
    for (size_t at = 0; (at = text.find("error: ", at)) != std::string::npos; ++at) ++errors;
    return errors;
  }
};

TEST_F(Failures, AnExceptionOnOneRankEndsAllWithItsMessage) {
  for (const int rank : {0, 1}) {
    const ProcessResult result = run_with("exception", 2, rank);
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("rank " + std::to_string(rank) + " (host "));
    EXPECT_THAT(result.err, HasSubstr("a mistake of the program"));
    EXPECT_THAT(result.err, HasSubstr("global step 6"));
    EXPECT_EQ(errors_in(result.err), 1) << result.err;
    expect_all_intact(log_dir_, 1);
  }
}

// A sample that one rank cannot read: what all have trained is kept, and the run goes on from there.
TEST_F(Failures, ASampleThatOneRankCannotReadEndsAllWhenTheirStepsAreSaved) {
  const Words flags = {"--save_model_steps=0", "--save_model_secs=0", "--max_number_of_steps=30"};
  const std::string whole = fresh_directory("unreadable_whole");
  expect_success(run_with("unreadable", 2, 2, flags + Words{"--train_url=" + whole}));
  for (const int rank : {0, 1}) {
    std::filesystem::remove_all(log_dir_);
    const ProcessResult result = run_with("unreadable", 2, rank, flags);
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("rank " + std::to_string(rank) + " (host "));
    EXPECT_THAT(result.err, HasSubstr("'daisy/17.jpg' is damaged (on_bad_sample)"));
    EXPECT_EQ(errors_in(result.err), 1) << result.err;
    const int64_t kept = load_checkpoint(log_dir_).global_step;
    EXPECT_GT(kept, 0);
    EXPECT_LT(kept, 30);
    expect_success(run_with("unreadable", 2, 2, flags));  // mended
    EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(whole));
  }
}

TEST_F(Failures, ASampleOfAnEvaluationThatOneRankCannotReadEndsAllWhenTheirStepsAreSaved) {
  for (const int rank : {0, 1}) {
    std::filesystem::remove_all(log_dir_);
    const ProcessResult result = run_with("unreadable_evaluation", 2, rank,
                                          {"--save_model_steps=0", "--save_model_secs=0",
                                           "--max_number_of_steps=30", "--eval_every_n_steps=7"});
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("'daisy/17.jpg' is damaged (on_bad_sample)"));
    EXPECT_EQ(errors_in(result.err), 1) << result.err;
    EXPECT_EQ(load_checkpoint(log_dir_).global_step, 7);
  }
}

TEST_F(Failures, AKilledRankEndsAllAndIsNamed) {
  for (const int rank : {0, 1, 3}) {
    const ProcessResult result = run_with("kill", 4, rank);
    EXPECT_FALSE(result.timed_out);
    EXPECT_NE(result.status, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("rank " + std::to_string(rank) + " (host "));
    // The rank that speaks may still wait for its part of the step before.
    EXPECT_THAT(result.err, testing::ContainsRegex("was lost when rank [01] was at global step [56]:"));
    expect_all_intact(log_dir_, 1);
  }
}

// More than a rank waits for a disk or a processor on a busy machine: rank 0 alone writes files before the
// first step.
constexpr const char* kAbort = "--stall_abort_s=10";

TEST_F(Failures, AStoppedRankIsNamedAndEndsTheJobInTime) {
  for (const int rank : {0, 2}) {
    const ProcessResult result = run_with("stop", 4, rank, {"--stall_warning_s=0.5", kAbort});
    EXPECT_FALSE(result.timed_out);
    EXPECT_NE(result.status, 0) << result.err;
    EXPECT_THAT(result.err, testing::ContainsRegex("error: rank " + std::to_string(rank) +
                                                   " \\(host [^)]*\\) has not sent its part of"));
    EXPECT_THAT(result.err, HasSubstr("its process does not answer"));
    EXPECT_THAT(result.err, HasSubstr("at global step 6 for"));
    EXPECT_THAT(result.err, HasSubstr("(stall_abort_s), so the job ends"));
    expect_all_intact(log_dir_, 1);
  }
}

TEST_F(Failures, ARankThatIsBusyForTooLongIsNamedAsOneThatAnswers) {
  const ProcessResult result = run_with("sleep", 4, 0, {"--stall_warning_s=0.5", kAbort});
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.err, testing::ContainsRegex("error: rank 0 \\(host [^)]*\\) has not sent its part of"));
  EXPECT_THAT(result.err, HasSubstr("its process answers and does something else at global step 6"));
}

TEST_F(Failures, WorkForAMachineIsWaitedForAsLongAsItsProcessAnswers) {
  const ProcessResult result = run_with("local_work", 2, 0, {"--stall_warning_s=0.5", "--stall_abort_s=2"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("all have passed"));
  EXPECT_THAT(result.err, HasSubstr("its process answers and is at work for its machine in "
                                    "mpi_local_sync_barrier at global step 0. The job waits for it"));
}

TEST_F(Failures, WorkForAMachineWhoseProcessDoesNotAnswerEndsTheJob) {
  const ProcessResult result = run_with("local_stop", 2, 0, {"--stall_warning_s=0.5", kAbort});
  EXPECT_FALSE(result.timed_out);
  EXPECT_NE(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("its process does not answer"));
}

TEST_F(Failures, ARankThatEndsItsProgramEarlyIsNamed) {
  const ProcessResult result = run_with("leave", 2, 1);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1 (host "));
  EXPECT_THAT(result.err, HasSubstr("has come to the end of its program"));
}

// Whichever has the longer message.
TEST_F(Failures, AFunctionThatOneRankCallsAloneIsSaidToBeThat) {
  for (const std::string numbers : {"1", "1000"}) {
    const ProcessResult result = run_with("alone", 2, 0, {"--fault_numbers=" + numbers});
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("must be called by all of them, not by one alone"));
  }
}

TEST_F(Failures, RanksThatDoNotRunTheSameAreNamedWithTheFirstDifference) {
  const ProcessResult result = run_with("batch", 4, 2);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 0 (host "));
  EXPECT_THAT(result.err, HasSubstr("and rank 2 (host "));
  EXPECT_THAT(result.err, HasSubstr("in the configuration: 'batch_size: 8' against 'batch_size: 9'"));
}

TEST_F(Failures, RanksWithOtherPixelsAreNamedWithTheFirstDifference) {
  const ProcessResult result = run_with("pixels", 2, 1);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.err, testing::ContainsRegex("in the data: 'sample 0 of from_arrays\\(300\\): [0-9a-f]*' "
                                                 "against 'sample 0 of from_arrays"));
}

TEST_F(Failures, RanksThatDoNotEvaluateTheSameAreNamedInEveryMode) {
  for (const std::string mode : {"train", "eval"}) {
    if (mode == "eval")
      expect_success(
          run_process({"distributed_program", "--train_url=" + log_dir_, "--max_number_of_steps=2"}));
    const ProcessResult result = run_with("data", 2, 1, {"--run_mode=" + mode, kAbort});
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("and rank 1 (host "));
    EXPECT_THAT(result.err, HasSubstr("in the data: "));
  }
  const Words command = {"distributed_program", "--train_url=" + log_dir_, "--run_mode=eval"};
  const ProcessResult options = run_process(job_of_two(command, command + Words{"--eval_batch_size=60"}));
  EXPECT_EQ(options.status, 1);
  EXPECT_THAT(options.err,
              HasSubstr("in the configuration: 'eval_batch_size: 0' against 'eval_batch_size: 60'"));
  // What a filter leaves is not known before it has run.
  const ProcessResult filtered = run_with("filter", 2, 1, {"--run_mode=eval"});
  EXPECT_EQ(filtered.status, 1) << filtered.out;
  EXPECT_THAT(filtered.err, HasSubstr("rank 1 (host "));
  EXPECT_THAT(filtered.err,
              HasSubstr("has come to the end of the data of input_fn(eval) before other ranks"));
}

TEST_F(Failures, ARankThatStopsInAnEvaluationEndsTheJobInTime) {
  expect_success(run_process({"distributed_program", "--train_url=" + log_dir_, "--max_number_of_steps=2"}));
  const ProcessResult result = run_with("stop_evaluation", 2, 1, {"--run_mode=eval", kAbort});
  EXPECT_FALSE(result.timed_out);
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.err, HasSubstr("(stall_abort_s), so the job ends"));
}

TEST_F(Failures, AWishOfOneRankToStopBeforeTheFirstStepEndsAllThere) {
  const ProcessResult result = run_with("early", 2, 1, {kAbort});
  EXPECT_FALSE(result.timed_out);
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("stopped because rank 1 was asked to stop"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 0);
}

// The evaluation that a failed one has left over is one of all ranks.
TEST_F(Failures, SoDoesAWishWhereAnEvaluationIsDueFirst) {
  const Words flags = {"--save_model_steps=0", "--save_model_secs=0", "--max_number_of_steps=30",
                       "--eval_every_n_steps=7", kAbort};
  EXPECT_EQ(run_with("unreadable_evaluation", 2, 1, flags).status, 1);
  const ProcessResult result = run_with("early", 2, 1, flags);
  EXPECT_FALSE(result.timed_out);
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("stopped because rank 1 was asked to stop"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 7);
}

TEST_F(Failures, ASignalToOneRankSavesAtTheSameStepOnAllAndEndsWithItsStatus) {
  const std::string whole = fresh("whole");
  const Words program = {"distributed_program", "--log_every_n_steps=0", "--logical_replicas=2",
                         "--threads=2"};
  expect_success(run_process(job_of(2, program + Words{"--train_url=" + whole})));
  const ProcessResult result = run_with("terminate", 2, 1, {"--logical_replicas=2", "--threads=2"});
  EXPECT_EQ(result.status, kExitInterrupted) << result.err;
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 6);
  expect_success(run_process(job_of(2, program + Words{"--train_url=" + log_dir_})));
  EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(whole));
}

TEST_F(Failures, AMissingCheckpointIsSaidOnce) {
  const ProcessResult result =
      run_process(job_of(2, {"distributed_program", "--train_url=" + log_dir_, "--run_mode=eval"}));
  EXPECT_EQ(result.status, 2) << "no restart would find one";
  EXPECT_EQ(errors_in(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("needs trained variables"));
}

TEST_F(Failures, TheFunctionsForUsersDoWhatTheySay) {
  for (const int ranks : {1, 2, 4}) {
    const ProcessResult result = run_process(job_of(ranks, {"distributed_program", "--fault=functions"}));
    expect_success(result);
    EXPECT_THAT(result.out, HasSubstr("ranks: " + std::to_string(ranks)));
  }
}

}  // namespace
}  // namespace mox
