// Ranks killed and stopped at random steps. MOX_TRIALS says how many times each; a few by default.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/random.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 4, kStepsBetweenSaves = 3;

int trials() {
  const char* text = std::getenv("MOX_TRIALS");
  return text ? std::atoi(text) : 3;
}

class Trials : public TrainingTest {
 protected:
  // A job whose rank `rank` has the fault before a random step, and which waits `abort_s` seconds for a rank,
  // more than a busy machine makes one wait; what it prints, and that its checkpoint loads.
  ProcessResult trial(const std::string& fault, int abort_s, uint64_t number, int rank, int64_t step) {
    const std::string log_dir = fresh(fault + std::to_string(number));
    ProcessResult result =
        Process(job_of(kRanks,
                       {"distributed_program", "--train_url=" + log_dir, "--fault=" + fault,
                        "--fault_rank=" + std::to_string(rank), "--fault_step=" + std::to_string(step),
                        "--save_model_steps=" + std::to_string(kStepsBetweenSaves), "--log_every_n_steps=0",
                        "--stall_warning_s=1", "--stall_abort_s=" + std::to_string(abort_s)}))
            .wait(60);
    EXPECT_FALSE(result.timed_out);
    EXPECT_NE(result.status, 0);
    // By the message that ends the job: a warning may name a rank that was only slow.
    EXPECT_THAT(result.err, testing::ContainsRegex("error: rank " + std::to_string(rank) + " \\(host "));
    // A checkpoint is written while the next steps run: at the second save the first one is complete.
    expect_all_intact(log_dir, step > 2 * kStepsBetweenSaves ? 1 : 0);
    if (latest_checkpoint(log_dir)) ++with_checkpoint_;
    std::filesystem::remove_all(log_dir);
    return result;
  }
  void say_how_many() const {
    std::printf("%d trials, after %d of which there was a checkpoint, always whole\n", trials(),
                with_checkpoint_);
  }

  int with_checkpoint_ = 0;
};

TEST_F(Trials, OfKillingARank) {
  const RandomStream random(11, 1);
  for (int i = 0; i < trials(); ++i) {
    const auto number = static_cast<uint64_t>(i);
    const auto step = static_cast<int64_t>(random.below(2 * number + 1, 38));
    const ProcessResult result =
        trial("kill", 50, number, static_cast<int>(random.below(2 * number, kRanks)), step);
    // The rank that speaks may still wait for its part of the step before.
    EXPECT_THAT(result.err,
                testing::ContainsRegex("was lost when rank [01] was at global step (" + std::to_string(step) +
                                       "|" + std::to_string(step + 1) + "):"));
    if (HasFailure()) break;
  }
  if (!HasFailure()) say_how_many();
}

TEST_F(Trials, OfStoppingARank) {
  const RandomStream random(11, 2);
  for (int i = 0; i < trials(); ++i) {
    const auto number = static_cast<uint64_t>(i);
    const auto step = static_cast<int64_t>(random.below(2 * number + 1, 38));
    const ProcessResult result =
        trial("stop", 10, number, static_cast<int>(random.below(2 * number, kRanks)), step);
    EXPECT_THAT(result.err, HasSubstr("at global step " + std::to_string(step + 1) + " for"));
    EXPECT_THAT(result.err, HasSubstr("its process does not answer"));
    EXPECT_THAT(result.err, HasSubstr("(stall_abort_s), so the job ends"));
    if (HasFailure()) break;
  }
  if (!HasFailure()) say_how_many();
}

}  // namespace
}  // namespace mox
