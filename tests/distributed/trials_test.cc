// Ranks killed and stopped at random steps. MOX_TRIALS says how many times each; a few by default.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "moxing/checkpoint.h"
#include "runtime/base/random.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 4;

int trials() {
  const char* text = std::getenv("MOX_TRIALS");
  return text ? std::atoi(text) : 3;
}

class Trials : public TrainingTest {
 protected:
  // A job whose rank `rank` has the fault before a random step; what it prints, and that its checkpoint loads.
  ProcessResult trial(const std::string& fault, uint64_t number, int rank, int64_t step) const {
    const std::string log_dir = fresh(fault + std::to_string(number));
    const ProcessResult result =
        Process(job_of(kRanks, {"distributed_program", "--train_url=" + log_dir, "--fault=" + fault,
                                "--fault_rank=" + std::to_string(rank),
                                "--fault_step=" + std::to_string(step), "--save_model_steps=3",
                                "--log_every_n_steps=0", "--stall_warning_s=0.3", "--stall_abort_s=1"}))
            .wait(60);
    EXPECT_FALSE(result.timed_out);
    EXPECT_NE(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("rank " + std::to_string(rank) + " (host "));
    if (latest_checkpoint(log_dir)) expect_all_intact(log_dir, 1);
    std::filesystem::remove_all(log_dir);
    return result;
  }
};

TEST_F(Trials, OfKillingARank) {
  const RandomStream random(11, 1);
  for (int i = 0; i < trials(); ++i) {
    const auto number = static_cast<uint64_t>(i);
    const auto step = static_cast<int64_t>(random.below(2 * number + 1, 38));
    const ProcessResult result =
        trial("kill", number, static_cast<int>(random.below(2 * number, kRanks)), step);
    // The rank that speaks may still wait for its part of the step before.
    EXPECT_THAT(result.err,
                testing::ContainsRegex("was lost when rank [01] was at global step (" + std::to_string(step) +
                                       "|" + std::to_string(step + 1) + "):"));
    if (HasFailure()) break;
  }
}

TEST_F(Trials, OfStoppingARank) {
  const RandomStream random(11, 2);
  for (int i = 0; i < trials(); ++i) {
    const auto number = static_cast<uint64_t>(i);
    const auto step = static_cast<int64_t>(random.below(2 * number + 1, 38));
    const ProcessResult result =
        trial("stop", number, static_cast<int>(random.below(2 * number, kRanks)), step);
    EXPECT_THAT(result.err, HasSubstr("at global step " + std::to_string(step + 1) + " for"));
    EXPECT_THAT(result.err, HasSubstr("(stall_abort_s), so the job ends"));
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace mox
