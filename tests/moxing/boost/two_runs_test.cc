// Stage 2 in a run of its own, with what other runs have left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/moxing/small_run.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TwoRuns : public SmallRun {
 protected:
  TwoRuns() {
    for (const char* name : {"one", "other"}) {
      RunSpec run = spec();
      run.log_dir = directory_.file(name);
      run.snapshots = SnapshotHookOptions{.every_n_steps = 1};
      run_or_throw(run);
    }
  }
  // Stage 2 from the run "one", in directions of the run `of`; what it says.
  std::string stage_two(const std::string& of) {
    const ScopedConfiguration configured{std::vector<std::string>{"--threads=1", "--log_level=warning"}};
    RunSpec run = spec();
    run.log_dir = directory_.file("in_" + of);
    run.checkpoint_path = directory_.file("one");
    run.boost = BoostOptions{.dim_reduce = true};
    run.dim_reduce =
        DimReduceOptions{.n_components = 1, .weight_load_dir = directory_.file(of + "/snapshots")};
    testing::internal::CaptureStderr();
    run_or_throw(run);
    return testing::internal::GetCapturedStderr();
  }
  const TemporaryDirectory directory_;
};

TEST_F(TwoRuns, SnapshotsOfAnotherRunThanTheWeightsAreNoted) {
  EXPECT_THAT(stage_two("one"), Not(HasSubstr("snapshots")));
  EXPECT_THAT(stage_two("other"), HasSubstr("are not those of the run that has trained"));
}

TEST_F(TwoRuns, UnfinishedBasesOfAKilledRunAreRemoved) {
  const auto put = [&](const std::string& name) {
    return directory_.write("in_one/pca_mat.npy" + name, "x");
  };
  std::filesystem::create_directories(directory_.file("in_one"));
  const std::string unfinished = put(".writing-0123456789abcdef"), of_the_user = put(".writing-up");
  stage_two("one");
  EXPECT_FALSE(std::filesystem::exists(unfinished));
  EXPECT_TRUE(std::filesystem::exists(of_the_user));
}

}  // namespace
}  // namespace mox
