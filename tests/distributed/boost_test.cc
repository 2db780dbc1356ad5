// Dimension-reduced training on several ranks: the same bits as on one, in one run and in two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/file.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

class BoostJobs : public TrainingTest {
 protected:
  // Stage 1 is a pass over the data, ten steps.
  ProcessResult train_on(const TestPlacement& placement, const std::string& log_dir, int steps,
                         const Words& flags) const {
    return run_process(
        job_of(placement.ranks,
               Words{"distributed_program", "--train_url=" + log_dir,
                     "--max_number_of_steps=" + std::to_string(steps), "--threads=4", "--logical_replicas=4",
                     "--log_every_n_steps=0", "--num_devices=" + std::to_string(placement.devices)} +
                   flags));
  }

  const Words both_stages_ = {"--snapshots.every_n_steps=1", "--boost.dim_reduce=true",
                              "--dim_reduce.from_epoch=1", "--dim_reduce.n_components=5"};
};

TEST_F(BoostJobs, AllPlacementsGiveTheSameWeights) {
  for (const std::string mode : {"skip", "shrink"}) {
    const Words flags = both_stages_ + Words{"--dim_reduce.on_failed_search=" + mode};
    std::string expected, expected_state, expected_basis;
    for (const TestPlacement& placement :
         {TestPlacement{1, 1}, TestPlacement{1, 2}, TestPlacement{2, 1}, TestPlacement{2, 2}}) {
      const std::string log_dir = fresh(mode + placement.name());
      expect_success(train_on(placement, log_dir, 30, flags));
      const std::string state = load_checkpoint(log_dir).state.at("stage_two");
      const std::string basis = read_file(log_dir + "/pca_mat.npy");
      if (expected.empty()) {
        expected = checkpoint_digest(log_dir);
        expected_state = state;
        expected_basis = basis;
      }
      EXPECT_EQ(checkpoint_digest(log_dir), expected) << mode << " on " << placement.name();
      EXPECT_EQ(state, expected_state) << mode << " on " << placement.name();
      EXPECT_EQ(basis, expected_basis) << mode << " on " << placement.name();
    }
  }
}

TEST_F(BoostJobs, ARunMovesInTheMiddleOfEachStage) {
  const std::string whole = fresh("whole"), moved = fresh("moved");
  expect_success(train_on({1, 1}, whole, 30, both_stages_));
  expect_success(train_on({2, 1}, moved, 6, both_stages_));
  expect_success(train_on({1, 2}, moved, 10, both_stages_));
  expect_success(train_on({1, 1}, moved, 11, both_stages_));
  expect_success(train_on({2, 2}, moved, 19, both_stages_));
  expect_success(train_on({2, 1}, moved, 30, both_stages_));
  EXPECT_EQ(checkpoint_digest(moved), checkpoint_digest(whole));
  EXPECT_EQ(load_checkpoint(moved).state.at("stage_two"), load_checkpoint(whole).state.at("stage_two"));
}

TEST_F(BoostJobs, TwoRunsFromYaml) {
  const std::string first = fresh("first"), yaml = fresh("second") + ".yaml";
  expect_success(train_on({2, 1}, first, 10, {"--snapshots.every_n_steps=1"}));
  std::ofstream(yaml) << "checkpoint_path: " << first
                      << "\nboost: {mode: manual, dim_reduce: true}\n"
                         "dim_reduce:\n"
                         "  rho: 0.5\n"
                         "  gamma: 0.8\n"
                         "  alpha: 0.002\n"
                         "  sigma: 0.3\n"
                         "  n_components: 5\n"
                         "  timeout: 60\n"
                      << "  weight_load_dir: " << first << "/snapshots\n"
                      << "  pca_mat_path: " << first << "/basis.npy\n";
  std::string expected;
  for (const TestPlacement& placement : {TestPlacement{2, 1}, TestPlacement{1, 1}}) {
    const std::string log_dir = fresh("second" + placement.name());
    const ProcessResult result = train_on(placement, log_dir, 8, {"--config=" + yaml});
    expect_success(result);
    EXPECT_THAT(result.out, testing::AllOf(testing::HasSubstr("stage 2, in 5 dimensions"),
                                           testing::HasSubstr("accepted step lengths: 1 (")));
    if (expected.empty()) expected = checkpoint_digest(log_dir);
    EXPECT_EQ(checkpoint_digest(log_dir), expected) << placement.name();
  }
  const std::string off = fresh("off");
  expect_success(train_on({2, 1}, off, 8, {"--config=" + yaml, "--boost_level=O0"}));
  EXPECT_NE(checkpoint_digest(off), expected);
}

}  // namespace
}  // namespace mox
