// Ranks whose processors have different vector instructions, and runs that move between such processors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/checkpoint/checkpoint.h"
#include "ops/processor/instruction_set.h"
#include "ops/processor/processor.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::HasSubstr;
using testing::Not;

class Instructions : public TrainingTest {
 protected:
  void SetUp() override {
    if (available_processor().lanes < 16) GTEST_SKIP() << "needs AVX-512";
  }

  // The program with two logical replicas, as it is started on a machine with AVX-512, or with AVX2 alone.
  static Words program(const std::string& log_dir, int steps, const Words& flags = {}) {
    return Words{MOX_BINARY_DIR "/bin/distributed_program",
                 "--train_url=" + log_dir,
                 "--max_number_of_steps=" + std::to_string(steps),
                 "--log_every_n_steps=0",
                 "--threads=2",
                 "--logical_replicas=2",
                 "--wide=true"} +
           flags;
  }
  static Words limited(const Words& command) {
    return Words{"/usr/bin/env", "DNNL_MAX_CPU_ISA=AVX2"} + command;
  }
  static Words job(const Words& first, const Words& second) { return job_of_commands({first, second}); }
};

TEST_F(Instructions, OfRanksAreThoseThatAllHave) {
  const std::string whole = fresh("whole"), plain = fresh("plain");
  expect_success(run_process(limited(program(whole, 6))));
  expect_success(run_process(program(plain, 6)));
  ASSERT_NE(checkpoint_digest(plain), checkpoint_digest(whole)) << "the instructions make no difference";
  for (const bool first_is_limited : {false, true}) {
    const std::string log_dir = fresh(first_is_limited ? "first" : "second");
    const Words other = program(log_dir, 6), less = limited(other);
    const ProcessResult result = run_process(first_is_limited ? job(less, other) : job(other, less));
    expect_success(result);
    EXPECT_THAT(result.err, HasSubstr(first_is_limited ? "rank 0 (host " : "rank 1 (host "));
    EXPECT_THAT(result.err, HasSubstr("has avx2 instructions, rank "));
    EXPECT_THAT(result.err, HasSubstr("all ranks compute with avx2"));
    EXPECT_EQ(checkpoint_digest(log_dir), checkpoint_digest(whole));
  }
}

TEST_F(Instructions, OfARankThatHasCompiledWithOthersBeforeAreRefused) {
  expect_success(run_process(limited(program(log_dir_, 3))));
  for (const std::string mode : {"eval", "train"}) {
    const Words other = program(log_dir_, 6, {"--run_mode=" + mode, "--fault=compiled", "--fault_rank=1"});
    const ProcessResult result = run_process(job(limited(other), other));
    EXPECT_FALSE(result.timed_out);
    EXPECT_NE(result.status, 0);
    EXPECT_THAT(result.err,
                HasSubstr("The first difference is in the instructions in use: 'avx2' against '"));
  }
}

TEST_F(Instructions, StayWithARunThatMovesToAProcessorWithMore) {
  const std::string whole = fresh("whole"), moved = fresh("moved"), freed = fresh("freed");
  expect_success(run_process(limited(program(whole, 9))));
  for (const std::string& log_dir : {moved, freed}) expect_success(run_process(limited(program(log_dir, 4))));
  const ProcessResult one = run_process(program(moved, 6));
  expect_success(one);
  EXPECT_THAT(one.err, HasSubstr("was computed with avx2 instructions, and the run goes on with them"));
  expect_success(run_process(job(program(moved, 9), program(moved, 9))));
  EXPECT_EQ(checkpoint_digest(moved), checkpoint_digest(whole));

  const ProcessResult inexact = run_process(program(freed, 9, {"--allow_inexact"}));
  expect_success(inexact);
  EXPECT_THAT(inexact.err, HasSubstr("allow_inexact is set, so the run goes on with"));
  EXPECT_NE(checkpoint_digest(freed), checkpoint_digest(whole));
}

TEST_F(Instructions, ThatAreMissingAreNamed) {
  expect_success(run_process(program(log_dir_, 3)));
  const ProcessResult result = run_process(limited(program(log_dir_, 6)));
  expect_success(result);
  EXPECT_THAT(result.err,
              HasSubstr("was computed with " + std::string(to_string(available_instruction_set())) +
                        " instructions, and this processor has avx2"));
  EXPECT_THAT(run_process(program(fresh("new"), 3)).err, Not(HasSubstr("was computed with")));
}

}  // namespace
}  // namespace mox
