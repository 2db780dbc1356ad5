// Stage 2 in a run of its own, with what other runs have left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/moxing/small_run.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
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

TEST_F(TwoRuns, ARunFromACheckpointWithSnapshotsOfItsOwnIsNotWarned) {
  const ScopedConfiguration configured{std::vector<std::string>{"--threads=1", "--log_level=warning"}};
  RunSpec run = spec();
  run.log_dir = directory_.file("single");
  run.checkpoint_path = directory_.file("one");
  run.snapshots = SnapshotHookOptions{.every_n_steps = 1};
  run.max_number_of_steps = 10;
  run.boost = BoostOptions{.dim_reduce = true};
  run.dim_reduce = DimReduceOptions{.from_epoch = 1, .n_components = 1};
  testing::internal::CaptureStderr();
  run_or_throw(run);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("are not those of the run")));
}

// 10 samples: 7 steps of two, then steps of four. The second pass ends within step 9, the third with step 11.
TEST_F(SmallRun, PassesAreThoseOverTheSamplesThatWereTaken) {
  const auto train = [&](const std::string& replicas, int64_t steps) {
    const ScopedConfiguration configured(
        {"--threads=1", "--log_level=error", "--allow_inexact", "--logical_replicas=" + replicas});
    RunSpec run = spec();
    run.max_number_of_steps = steps;
    run.snapshots = SnapshotHookOptions{.every_n_epochs = 1};
    run.boost = BoostOptions{.dim_reduce = true};
    run.dim_reduce = DimReduceOptions{.from_epoch = 3, .n_components = 1};
    testing::internal::CaptureStdout();
    run_or_throw(run);
    std::vector<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(log_dir_ + "/snapshots"))
      files.push_back(file.path().filename());
    EXPECT_THAT(files, testing::IsSubsetOf(
                           {"snapshot-5.safetensors", "snapshot-9.safetensors", "snapshot-11.safetensors"}));
    return testing::internal::GetCapturedStdout();
  };
  train("1", 7);
  EXPECT_THAT(train("2", 10), HasSubstr("it begins after step 11"));
  train("2", 13);
  EXPECT_THAT(load_checkpoint(log_dir_).state.at("stage_two"), HasSubstr("\"first_step\":11"));
  train("1", 16);  // whose steps would reach the third pass at step 18
}

// JSON, in which the rows of the table are kept, has no such numbers.
TEST_F(TwoRuns, AMetricThatIsNotFiniteDoesNotKeepARunFromGoingOn) {
  const auto printed = [&](int64_t steps) {
    RunSpec run = spec();
    run.log_dir = directory_.file("not_finite");
    run.model_fn = [](const Inputs& in, ModeKeys mode) {
      ModelSpec model = constant_slope_model(in, mode);
      const Tensor zero = in[0] * 0.0f;
      model.log_info.emplace_back("undefined", reduce_mean(log(zero - 1.0f)));
      model.log_info.emplace_back("endless", reduce_mean(-log(zero)));
      return model;
    };
    run.inter_mode = ModeKeys::EVAL;
    run.max_number_of_steps = steps;
    run.checkpoint_path = directory_.file("one");
    run.boost = BoostOptions{.dim_reduce = true};
    run.dim_reduce = DimReduceOptions{.n_components = 1, .weight_load_dir = directory_.file("one/snapshots")};
    testing::internal::CaptureStdout();
    run_or_throw(run);
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_THAT(printed(2), AllOf(HasSubstr(" nan"), HasSubstr(" inf"), Not(HasSubstr("-nan"))));
  const std::string later = printed(3);
  EXPECT_THAT(later, AllOf(HasSubstr(" nan"), HasSubstr(" inf"), Not(HasSubstr("-nan"))));
  EXPECT_THAT(later, ContainsRegex("\n +0 +0 ")) << "the row of before stage 2, read back";
}

// The counts of a stage 2 that goes on with another rho are not those of its lengths.
TEST_F(TwoRuns, LengthsOfSeveralRhoAreNotGivenAsThoseOfOne) {
  const auto printed = [&](double rho, int64_t steps) {
    RunSpec run = spec();
    run.log_dir = directory_.file("rho");
    run.max_number_of_steps = steps;
    run.checkpoint_path = directory_.file("one");
    run.boost = BoostOptions{.dim_reduce = true};
    run.dim_reduce =
        DimReduceOptions{.n_components = 1, .rho = rho, .weight_load_dir = directory_.file("one/snapshots")};
    testing::internal::CaptureStdout();
    run_or_throw(run);
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_THAT(printed(0.5, 2), HasSubstr("accepted step lengths: 1 (2x) 0.5 (0x)"));
  EXPECT_THAT(printed(0.5, 3), HasSubstr("accepted step lengths: 1 (3x) 0.5 (0x)"));
  for (const int64_t steps : {4, 5})
    EXPECT_THAT(printed(0.25, steps), HasSubstr("accepted trials (dim_reduce.rho has changed): 1 (" +
                                                std::to_string(steps) + "x) 2 (0x)"));
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

// The gradient of "idle" is 0, but for the batch with the number 4: there it is more than float32 has, once
// the loss is scaled.
ModelSpec seldom_overflowing_model(const Inputs& in, ModeKeys) {
  const Tensor w = get_variable("w", {}, ones()), idle = get_variable("idle", {}, zeros());
  const Tensor four = reduce_sum(relu(in[0] + -3.5F) * relu(in[0] * -1.0F + 4.5F));
  return {.loss = w * w + idle * (four * 4e35F)};
}

TEST_F(SmallRun, AStepThatOverflowsIsLeftOutOfTheSearch) {
  const TemporaryDirectory directory;
  const ScopedConfiguration configured{
      std::vector<std::string>{"--threads=1", "--log_level=warning", "--loss_scale=dynamic"}};
  const auto run_in = [&](const std::string& name, int64_t steps) {
    RunSpec run = spec();
    run.model_fn = seldom_overflowing_model;
    run.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.1});
    run.log_dir = directory.file(name);
    run.max_number_of_steps = steps;
    if (name == "stage1") {
      run.snapshots = SnapshotHookOptions{.every_n_steps = 1};
    } else {
      run.checkpoint_path = directory.file("stage1");
      run.boost = BoostOptions{.dim_reduce = true};
      run.dim_reduce =
          DimReduceOptions{.n_components = 1, .weight_load_dir = directory.file("stage1/snapshots")};
    }
    run_or_throw(run);
    return checkpoint_digest(*run.log_dir);
  };
  run_in("stage1", 4);
  testing::internal::CaptureStderr();
  const std::string whole = run_in("stage2", 15);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("global step 13 are not finite"));
  const auto state = load_checkpoint(directory.file("stage2")).state;
  EXPECT_THAT(state.at("loss_scale"), HasSubstr(R"("skipped_steps":3)"));
  EXPECT_THAT(state.at("stage_two"), HasSubstr(R"(\"steps\":12)"));
  for (const int64_t steps : {7, 8, 9}) run_in("in_parts", steps);
  EXPECT_EQ(run_in("in_parts", 15), whole);
  EXPECT_EQ(load_checkpoint(directory.file("in_parts")).state.at("stage_two"), state.at("stage_two"));
}

}  // namespace
}  // namespace mox
