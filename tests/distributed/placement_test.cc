// The same bits wherever the logical replicas of a run are computed.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/checkpoint/checkpoint.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

class Placements : public TrainingTest {
 protected:
  static Words program(const std::string& log_dir, int steps, const Words& flags = {}) {
    return Words{"distributed_program", "--train_url=" + log_dir,
                 "--max_number_of_steps=" + std::to_string(steps), "--log_every_n_steps=0"} +
           flags;
  }

  // Trains with four replicas and returns what the program printed.
  ProcessResult train_on(const TestPlacement& placement, const Words& command) const {
    return run_process(
        job_of(placement.ranks, command + Words{"--logical_replicas=4", "--threads=4",
                                                "--num_devices=" + std::to_string(placement.devices)}));
  }

  const std::vector<TestPlacement> placements_ = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {4, 1}};
};

TEST_F(Placements, AllGiveTheSameWeights) {
  std::string expected, expected_lines;
  for (const TestPlacement& placement : placements_) {
    const std::string log_dir = fresh(placement.name());
    const ProcessResult result = train_on(placement, program(log_dir, 25, {"--clip_gradient_norm=1"}));
    expect_success(result);
    if (expected.empty()) {
      expected = checkpoint_digest(log_dir);
      expected_lines = test_lines(result.out);
    }
    EXPECT_EQ(checkpoint_digest(log_dir), expected) << placement.name();
    EXPECT_EQ(test_lines(result.out), expected_lines) << placement.name();
  }
}

TEST_F(Placements, AllGiveTheLeNetTheSameWeights) {
  std::string expected;
  for (const TestPlacement& placement : placements_) {
    const std::string log_dir = fresh(placement.name());
    expect_success(train_on(placement, training("fashion_lenet", log_dir, 6)));
    if (expected.empty()) expected = checkpoint_digest(log_dir);
    EXPECT_EQ(checkpoint_digest(log_dir), expected) << placement.name();
  }
}

TEST_F(Placements, TheSchemesOfUpdatesGiveTheSameWeights) {
  for (const std::string loss_scale : {"1", "1024"}) {
    std::string expected;
    for (const std::string scheme : {"replicated_host", "replicated", "parameter_server"})
      for (const TestPlacement& placement : {TestPlacement{1, 4}, {2, 2}}) {
        const std::string log_dir = fresh(scheme + placement.name());
        // In two runs: the optimizer's memory is in the checkpoint, too.
        for (const int steps : {7, 12})
          expect_success(train_on(placement, program(log_dir, steps,
                                                     {"--clip_gradient_norm=1", "--loss_scale=" + loss_scale,
                                                      "--variable_update=" + scheme})));
        if (expected.empty()) expected = checkpoint_digest(log_dir);
        EXPECT_EQ(checkpoint_digest(log_dir), expected) << scheme << " on " << placement.name();
      }
  }
}

TEST_F(Placements, OneReplicaHasTheSameWeightsInAllSchemes) {
  std::string expected;
  for (const std::string scheme : {"replicated_host", "replicated", "parameter_server"}) {
    const std::string log_dir = fresh(scheme);
    expect_success(run_process(program(log_dir, 7, {"--threads=1", "--variable_update=" + scheme})));
    if (expected.empty()) expected = checkpoint_digest(log_dir);
    EXPECT_EQ(checkpoint_digest(log_dir), expected) << scheme;
  }
}

// 300 samples, 4 x 8 in a step: the tenth step has a full batch, a short one and two that are missing.
TEST_F(Placements, DataThatEndTrainEverySampleOnce) {
  std::string expected;
  for (const TestPlacement& placement : placements_) {
    const std::string log_dir = fresh(placement.name());
    const ProcessResult result = train_on(placement, program(log_dir, 40, {"--endless=false"}));
    expect_success(result);
    EXPECT_EQ(load_checkpoint(log_dir).global_step, 10) << placement.name();
    EXPECT_THAT(result.out, testing::HasSubstr("10 steps")) << placement.name();
    if (expected.empty()) expected = checkpoint_digest(log_dir);
    EXPECT_EQ(checkpoint_digest(log_dir), expected) << placement.name();
  }
}

TEST_F(Placements, ARunMovesInTheMiddleOfAnEpoch) {
  const std::string whole = fresh("whole"), moved = fresh("moved");
  expect_success(train_on({1, 1}, program(whole, 34)));
  expect_success(train_on({1, 2}, program(moved, 5)));
  expect_success(train_on({2, 1}, program(moved, 13)));
  expect_success(train_on({1, 1}, program(moved, 22)));
  // The number of replicas is in the checkpoint.
  expect_success(run_process(job_of(4, program(moved, 34, {"--threads=4"}))));
  EXPECT_EQ(checkpoint_digest(moved), checkpoint_digest(whole));
}

TEST_F(Placements, NormalisingTogetherGivesAllTheSameWeights) {
  std::string expected;
  for (const TestPlacement& placement : placements_) {
    const std::string log_dir = fresh(placement.name());
    // The data end with a full batch, a short one and two that are missing.
    expect_success(train_on(placement, program(log_dir, 40, {"--endless=false", "--sync_batch_norm=true"})));
    if (expected.empty()) expected = checkpoint_digest(log_dir);
    EXPECT_EQ(checkpoint_digest(log_dir), expected) << placement.name();
  }
  const std::string apart = fresh("apart");
  expect_success(train_on({1, 1}, program(apart, 40, {"--endless=false"})));
  EXPECT_NE(checkpoint_digest(apart), expected);
}

// A long gradient arrives in ranges, and only some rules can be applied to them one by one.
TEST_F(Placements, GradientsOfManyMessagesGiveTheSameWeightsWithAnyRule) {
  for (const std::string rule : {"--normalised=false", "--normalised=true"}) {
    std::string expected;
    for (const TestPlacement& placement : {TestPlacement{1, 4}, {2, 2}, {4, 1}}) {
      const std::string log_dir = fresh(placement.name());
      expect_success(train_on(placement, program(log_dir, 4, {"--wide=true", rule})));
      if (expected.empty()) expected = checkpoint_digest(log_dir);
      EXPECT_EQ(checkpoint_digest(log_dir), expected) << placement.name() << ' ' << rule;
    }
  }
}

TEST_F(Placements, TheWordsOfHorovodMakeVariablesEqual) {
  const Words flags = {"--logical_replicas=2", "--threads=2", "--max_number_of_steps=4",
                       "--log_every_n_steps=0"};
  const auto digest_with = [&](const std::string& fault) {
    const std::string log_dir = fresh(fault);
    expect_success(run_process(
        job_of(2, Words{"distributed_program", "--train_url=" + log_dir, "--fault=" + fault} + flags)));
    return checkpoint_digest(log_dir);
  };
  const std::string expected = digest_with("none");
  EXPECT_EQ(digest_with("horovod"), expected);
  EXPECT_NE(digest_with("variables"), expected) << "the hook has nothing to do in this test";
}

TEST_F(Placements, RanksAgreeOnANumberOfDevicesThatIsMeasured) {
  const std::string chosen = fresh("chosen"), given = fresh("given");
  expect_success(run_process(
      job_of(2, program(chosen, 5, {"--num_devices=auto", "--logical_replicas=4", "--threads=2"}))));
  expect_success(train_on({1, 1}, program(given, 5)));
  EXPECT_EQ(checkpoint_digest(chosen), checkpoint_digest(given));
}

// One rank has the cores for two devices, the other for one: what one could try alone, nobody tries.
TEST_F(Placements, RanksWithMoreAndWithFewerCoresAgreeOnANumberOfDevices) {
  const Words command = program(log_dir_, 5, {"--num_devices=auto", "--threads_per_device=1"});
  const ProcessResult result =
      Process(job_of_two(command + Words{"--threads=1"}, command + Words{"--threads=2"})).wait(60);
  EXPECT_FALSE(result.timed_out);
  expect_success(result);
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 5);
}

TEST_F(Placements, AnEvaluationIsTheSameOnAnyNumberOfRanks) {
  expect_success(train_on({1, 1}, program(log_dir_, 10)));
  std::string expected;
  for (const int ranks : {1, 2, 4}) {
    const ProcessResult result = run_process(
        job_of(ranks, program(log_dir_, 10, {"--run_mode=eval", "--threads=1", "--eval_batch_size=11"})));
    expect_success(result);
    if (expected.empty()) expected = test_lines(result.out);
    EXPECT_EQ(test_lines(result.out), expected) << ranks << " ranks";
  }
}

TEST_F(Placements, ThatCannotDivideAreRefusedWithThoseThatCan) {
  const ProcessResult refused = train_on({1, 3}, program(log_dir_, 5));
  expect_error(refused, {"4 logical replicas", "1 rank x 3 devices", "1, 2, 4", "--allow_inexact"}, 2);
  expect_success(train_on({1, 1}, program(log_dir_, 5)));
  const ProcessResult also = run_process(job_of(3, program(log_dir_, 10)));
  EXPECT_EQ(also.status, 2);
  EXPECT_THAT(also.err,
              testing::HasSubstr("3 ranks x 1 device = 3 (ranks x devices); these numbers can: 1, 2, 4"));
  expect_success(run_process(program(log_dir_, 10, {"--num_devices=3", "--allow_inexact"})));
}

TEST_F(Placements, OfOtherReplicasTakeAsManyPassesOverTheData) {
  expect_success(train_on({1, 1}, program(log_dir_, 5, {"--endless"})));  // 5 x 4 x 8 samples of 2 x 300
  const ProcessResult result =
      run_process(program(log_dir_, 100,
                          {"--endless", "--threads=3", "--num_devices=3", "--allow_inexact", "--max_epochs=2",
                           "--eval_every_n_epochs=1"}));
  expect_success(result);
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 5 + 19);                      // 440 samples by 3 x 8
  EXPECT_THAT(result.out, testing::HasSubstr("evaluation at global step 11:"));  // 140 samples by 3 x 8
  const ProcessResult again = run_process(program(
      log_dir_, 100, {"--endless", "--threads=3", "--num_devices=3", "--allow_inexact", "--max_epochs=2"}));
  expect_success(again);
  EXPECT_THAT(again.out + again.err, testing::HasSubstr("nothing to train"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 5 + 19);
}

TEST_F(Placements, OneReplicaMoreIsAnotherResult) {
  const std::string one = fresh("one"), two = fresh("two");
  expect_success(run_process(program(one, 5, {"--threads=1"})));
  expect_success(run_process(program(two, 5, {"--logical_replicas=2"})));
  EXPECT_NE(checkpoint_digest(one), checkpoint_digest(two));
}

TEST_F(Placements, ANarrowWireTrainsToo) {
  const ProcessResult result =
      run_process(job_of(2, program(log_dir_, 40, {"--wire_dtype=bfloat16", "--bucket_mb=0.01"})));
  expect_success(result);
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 40);
}

}  // namespace
}  // namespace mox
