#include "moxing/boost/snapshots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "moxing/boost/snapshot_hook.h"
#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/error.h"
#include "tests/moxing/boost/boost_samples.h"
#include "tests/moxing/small_run.h"
#include "tests/runtime/comm/thread_ranks.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using boost::list_snapshots;
using boost::SnapshotFile;
using boost::SnapshotSet;
using boost::write_snapshot;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const boost::Workers kTwoWorkers = boost::workers_of(Team(2));

std::vector<int64_t> steps_in(const std::string& directory) {
  std::vector<int64_t> steps;
  for (const SnapshotFile& file : list_snapshots(directory)) steps.push_back(file.step);
  return steps;
}

TEST(SnapshotsTest, AreListedByStepAndNothingElseIs) {
  const TemporaryDirectory directory;
  const Array walk = boost::random_walk(3, 3003);
  for (const int64_t step : {100, 9, 20}) write_snapshot(directory.path(), step, boost::weights_of(walk, 0));
  for (const char* name : {"snapshot-7.safetensors.tmp", "snapshot-x.safetensors", "snapshot-.safetensors",
                           "snapshot-07.safetensors", "checkpoint-8"})
    directory.write(name, "");
  EXPECT_THAT(steps_in(directory.path()), ElementsAre(9, 20, 100));
  EXPECT_THAT(steps_in(directory.file("none")), ElementsAre());
}

TEST(SnapshotsTest, TheNewestAreKept) {
  const TemporaryDirectory directory;
  const Array walk = boost::random_walk(1, 3003);
  for (const int64_t step : {1, 2, 3, 4})
    write_snapshot(directory.path(), step, boost::weights_of(walk, 0), {.keep = 2});
  EXPECT_THAT(steps_in(directory.path()), ElementsAre(3, 4));
}

TEST(SnapshotsTest, AreOneVectorInTheOrderOfNames) {
  const TemporaryDirectory directory;
  const Array walk = boost::random_walk(4, 3003);
  boost::write_walk(directory.path(), walk);
  Communicator alone;
  const SnapshotSet set(directory.path(), {}, alone, kTwoWorkers);
  ASSERT_EQ(set.vectors(), 4);
  ASSERT_EQ(set.columns(), 3003);
  for (const int64_t first : {0, 2, 3, 2999}) {  // across the border of the two variables, too
    std::vector<float> read(4);
    set.read(2, first, read);
    for (int64_t j = 0; j < 4; ++j) EXPECT_EQ(read[j], walk.values<float>()[2 * 3003 + first + j]);
  }
  EXPECT_THAT(set.describe(1, 5),
              AllOf(HasSubstr("snapshot-10.safetensors"), HasSubstr("'layer/w', element 2")));
}

std::string refusal(const std::string& directory, const boost::WeightLayout& expected = {}) {
  Communicator alone;
  return message_of<Error>([&] { SnapshotSet(directory, expected, alone, kTwoWorkers); });
}

TEST(SnapshotsTest, ThoseOfAnotherNetworkAreRefusedWithTheDifference) {
  const TemporaryDirectory directory;
  boost::write_walk(directory.path(), boost::random_walk(2, 3003));
  EXPECT_THAT(refusal(directory.path(), boost::WeightLayout({"b", "layer/w"}, {Shape{3}, Shape{3000}})),
              AllOf(HasSubstr("another network"), HasSubstr("'layer/w' is [2, 1500] and not [3000]")));
  EXPECT_THAT(refusal(directory.path(),
                      boost::WeightLayout({"b", "layer/w", "c"}, {Shape{3}, Shape{2, 1500}, Shape{1}})),
              HasSubstr("'c' is missing"));
  EXPECT_THAT(refusal(directory.path(), boost::WeightLayout({"b"}, {Shape{3}})),
              HasSubstr("'layer/w' is there beside"));
  const std::vector<NamedArray> other = {{"b", Array(DType::kFloat32, {4})}};
  write_snapshot(directory.path(), 30, other);
  EXPECT_THAT(refusal(directory.path()),
              AllOf(HasSubstr("snapshot-30"), HasSubstr("than"), HasSubstr("snapshot-0")));
  EXPECT_THAT(refusal(directory.file("none")), HasSubstr("there are no snapshots"));
}

TEST(SnapshotsTest, ThoseOfTwoRunsAreNotMixed) {
  const TemporaryDirectory directory;
  const Array walk = boost::random_walk(3, 3003);
  for (const int64_t step : {0, 1, 2})
    write_snapshot(directory.path(), step, boost::weights_of(walk, step), {.run = "one"});
  Communicator alone;
  EXPECT_EQ(SnapshotSet(directory.path(), {}, alone, kTwoWorkers).run(), "one");
  write_snapshot(directory.path(), 3, boost::weights_of(walk, 0), {.run = "another"});
  EXPECT_THAT(refusal(directory.path()),
              AllOf(HasSubstr("of two runs"), HasSubstr("snapshot-0"), HasSubstr("snapshot-3")));
}

TEST(SnapshotsTest, ADamagedOneIsFoundWhicheverByteItIs) {
  const TemporaryDirectory directory;
  boost::write_walk(directory.path(), boost::random_walk(2, 3003));
  const std::string path = directory.file("snapshot-10.safetensors");
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end).put('\x55');
  EXPECT_THAT(refusal(directory.path()), AllOf(HasSubstr("snapshot-10"), HasSubstr("is damaged")));
}

TEST(SnapshotsTest, RanksThatSeeDifferentFilesSaySo) {
  const TemporaryDirectory directory;
  boost::write_walk(directory.file("0"), boost::random_walk(3, 3003));
  boost::write_walk(directory.file("1"), boost::random_walk(2, 3003));
  run_ranks(2, [&](Communicator& ranks) {
    EXPECT_THAT(message_of<FailedPrecondition>([&] {
                  SnapshotSet(directory.file(std::to_string(ranks.rank())), {}, ranks, kTwoWorkers);
                }),
                AllOf(HasSubstr("(3 and 2 files)"), HasSubstr("all machines share")));
  });
}

class SnapshotHookTest : public SmallRun {
 protected:
  // An epoch has five steps.
  RunSpec with(const SnapshotHookOptions& options, int64_t steps) {
    RunSpec run = spec();
    run.max_number_of_steps = steps;
    run.hooks.push_back(snapshot_hook(options));
    return run;
  }
  std::vector<int64_t> steps() const { return steps_in(log_dir_ + "/snapshots"); }
};

TEST_F(SnapshotHookTest, WritesTheTrainedVariablesAloneAsTheyAreAfterTheStep) {
  run_or_throw(with({.every_n_steps = 3}, 7));
  EXPECT_THAT(steps(), ElementsAre(3, 6));
  const auto file = read_safetensors(log_dir_ + "/snapshots/snapshot-6.safetensors");
  ASSERT_EQ(file.tensors.size(), 1U);
  EXPECT_EQ(file.tensors[0].name, "w");
  EXPECT_EQ(file.tensors[0].value.item(), -6);
  EXPECT_FALSE(list_checkpoints(log_dir_).empty());
}

TEST_F(SnapshotHookTest, ByEpochsFromAnEpochOnKeepsTheNewest) {
  run_or_throw(with({.every_n_epochs = 2, .from_epoch = 3, .keep = 2}, 52));
  EXPECT_THAT(steps(), ElementsAre(40, 50));
}

TEST_F(SnapshotHookTest, ARunThatWritesNoneSaysSo) {
  const ScopedConfiguration configured{std::vector<std::string>{"--log_level=warning"}};
  testing::internal::CaptureStderr();
  run_or_throw(with({.every_n_epochs = 1, .from_epoch = 3}, 14));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("no snapshot was written: the run ended at step 14, before the first that is due "
                        "(snapshots.from_epoch is 3)"));
  EXPECT_THAT(steps(), ElementsAre());
  // Of a run that has written some, which lie elsewhere now.
  const RunSpec run = with({.every_n_epochs = 1}, 15);
  run_or_throw(run);
  std::filesystem::remove_all(log_dir_ + "/snapshots");
  testing::internal::CaptureStderr();
  run_or_throw(run);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("snapshot")));
}

TEST_F(SnapshotHookTest, BySecondsThatHavePassed) {
  RunSpec run = with({.every_n_secs = 1}, 7);
  auto slow = std::make_shared<CallbackHook>();
  slow->on_before = [](Session& session) {
    if (session.global_step() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  };
  run.hooks.insert(run.hooks.begin(), slow);
  run_or_throw(run);
  EXPECT_THAT(steps(), Contains(4));
  EXPECT_EQ(count_snapshots({.every_n_secs = 1}, 100, 5), -1) << "that is not known before";
  run = with({.every_n_secs = 1000000}, 7);
  run.log_dir = fresh_directory("seldom");
  run_or_throw(run);
  EXPECT_THAT(steps_in(*run.log_dir + "/snapshots"), ElementsAre());
}

TEST_F(SnapshotHookTest, EndsWhenItIsToldTo) {
  run_or_throw(with({.every_n_steps = 2, .until_step = 4}, 8));
  EXPECT_THAT(steps(), ElementsAre(2, 4));
}

TEST_F(SnapshotHookTest, ARunThatGoesOnMakesTheLaterOnesAgain) {
  RunSpec first = with({.every_n_steps = 2}, 8);
  first.save_model_steps = 5;
  first.hooks.push_back(after_run_hook([](Session& session, const StepResult&) {
    if (session.global_step() == 7) throw DataError("planted");
  }));
  EXPECT_THROW(run_or_throw(first), DataError);
  EXPECT_THAT(steps(), ElementsAre(2, 4, 6));
  run_or_throw(with({.every_n_steps = 4}, 8));  // goes on from step 5
  EXPECT_THAT(steps(), ElementsAre(2, 4, 8));
}

TEST_F(SnapshotHookTest, ThoseOfAnotherRunAreRefused) {
  const std::string elsewhere = log_dir_ + "-snapshots";
  std::filesystem::remove_all(elsewhere);
  run_or_throw(with({.every_n_steps = 2, .directory = elsewhere}, 4));
  RunSpec other = with({.every_n_steps = 2, .directory = elsewhere}, 4);
  other.log_dir = fresh_directory("another_run");
  EXPECT_THAT(message_of_run<FailedPrecondition>(other), HasSubstr("is of another run"));
  EXPECT_THAT(steps_in(elsewhere), ElementsAre(2, 4));
  std::filesystem::remove_all(elsewhere);
}

// A basis needs all of one choice of variables, and would not be found to lack it before stage 2 begins.
TEST_F(SnapshotHookTest, ARunThatGoesOnWithOtherVariablesIsRefused) {
  const auto run = [&](int64_t steps, std::vector<std::string> freeze) {
    RunSpec run = with({.every_n_steps = 2}, steps);
    run.model_fn = [](const Inputs& in, ModeKeys) -> ModelSpec {
      return {.loss = get_variable("w", {}, zeros()) + get_variable("v", {}, zeros()) + reduce_mean(in[0])};
    };
    run.freeze = std::move(freeze);
    return run;
  };
  run_or_throw(run(4, {"v"}));
  EXPECT_THAT(message_of_run<FailedPrecondition>(run(8, {})),
              AllOf(HasSubstr("snapshot-2.safetensors"), HasSubstr("'v' is missing"), HasSubstr("freeze")));
  EXPECT_THAT(steps(), ElementsAre(2, 4));
  EXPECT_EQ(run_or_throw(run(4, {})).global_step, 4) << "it writes none";
  EXPECT_EQ(run_or_throw(run(8, {"v"})).global_step, 8);
  EXPECT_THAT(steps(), ElementsAre(2, 4, 6, 8));
}

// Whoever may write to the log_dir could have other snapshots deleted. The user's own word may be a link.
TEST_F(SnapshotHookTest, ALinkInTheirPlaceIsNotFollowed) {
  const std::string others = fresh_directory("others"), link = log_dir_ + "/snapshots";
  run_or_throw(with({.every_n_steps = 2, .directory = others}, 4));
  std::filesystem::create_directory_symlink(others, link);
  const std::string said = message_of_run<IoError>(with({.every_n_steps = 1, .keep = 1}, 6));
  EXPECT_THAT(said, AllOf(HasSubstr("'" + link + "' is a link"), HasSubstr("Remove it")));
  const Array walk = boost::random_walk(1, 3003);
  EXPECT_THROW(
      write_snapshot(link, 5, boost::weights_of(walk, 0), {.keep = 1, .link = DirectoryLink::kRefused}),
      IoError);
  EXPECT_THROW(boost::delete_snapshots_after(link, 0, DirectoryLink::kRefused), IoError);
  EXPECT_THAT(steps_in(others), ElementsAre(2, 4));
  write_snapshot(link, 5, boost::weights_of(walk, 0), {.keep = 2});
  EXPECT_THAT(steps_in(others), ElementsAre(4, 5));
}

TEST_F(SnapshotHookTest, WhatCannotBeIsRefusedAtOnce) {
  EXPECT_THROW((snapshot_hook(SnapshotHookOptions{})), InvalidArgument);
  EXPECT_THROW((snapshot_hook(SnapshotHookOptions{.every_n_epochs = 1, .every_n_steps = 1})),
               InvalidArgument);
  EXPECT_THROW((snapshot_hook(SnapshotHookOptions{.every_n_steps = 1, .every_n_secs = 1})), InvalidArgument);
  EXPECT_THROW((snapshot_hook(SnapshotHookOptions{.every_n_steps = 1, .keep = -1})), InvalidArgument);
  RunSpec nowhere = with({.every_n_steps = 1}, 4);
  nowhere.log_dir = "";
  EXPECT_THAT(message_of_run<FailedPrecondition>(nowhere), HasSubstr("set log_dir or snapshots.directory"));
}

TEST_F(SnapshotHookTest, OptionsWithoutAnIntervalAreRefused) {
  const ScopedConfiguration configured{
      std::vector<std::string>{"--threads=1", "--log_level=error", "--snapshots.keep=5"}};
  EXPECT_THAT(message_of_run<ConfigError>(spec()), HasSubstr("no interval"));
}

TEST_F(SnapshotHookTest, AnIntervalOfNoneSwitchesThemOff) {
  const ScopedConfiguration configured{std::vector<std::string>{
      "--threads=1", "--log_level=error", "--snapshots.keep=5", "--snapshots.every_n_steps=0"}};
  RunSpec run = spec();
  run.max_number_of_steps = 5;
  run_or_throw(run);
  EXPECT_TRUE(steps().empty());
}

TEST_F(SnapshotHookTest, IsThereWhenTheOptionsSaySo) {
  const ScopedConfiguration configured{
      std::vector<std::string>{"--threads=1", "--log_level=error", "--snapshots.every_n_epochs=1"}};
  RunSpec run = spec();
  run.max_number_of_steps = 11;
  run_or_throw(run);
  EXPECT_THAT(steps(), ElementsAre(5, 10));
}

}  // namespace
}  // namespace mox
