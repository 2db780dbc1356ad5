// What is counted in passes over the data, by a run that goes on with steps of another number of samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::ElementsAre;

class PassesOverTheData : public SmallRun {
 protected:
  // Ten samples in batches of two: with four replicas a step takes 8 of them, with one 2.
  RunSpec evaluated_each_pass(int64_t steps) {
    auto s = spec();
    s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = piecewise_constant({epochs(3)}, {1, 0.5})});
    s.inter_mode = ModeKeys::EVAL;
    s.eval_every_n_epochs = 1;
    s.save_model_steps = 1;
    s.max_number_of_steps = steps;
    auto hook = std::make_shared<CallbackHook>();
    hook->on_before = [this](Session& session) { rates_.push_back(session.learning_rate()); };
    hook->on_evaluation = [this](Session& session, const Metrics&) {
      evaluated_.push_back(session.global_step());
    };
    s.hooks = {hook};
    return s;
  }
  void run_with(const std::vector<std::string>& flags, int64_t steps) {
    std::vector<std::string> all = {"--threads=1", "--log_level=error", "--keep_checkpoints=1",
                                    "--keep_checkpoint_every_n_epochs=1"};
    all.insert(all.end(), flags.begin(), flags.end());
    const ScopedConfiguration configuration(all);
    run_or_throw(evaluated_each_pass(steps));
  }
  std::vector<double> rates_;
  std::vector<int64_t> evaluated_;
};

TEST_F(PassesOverTheData, AreThoseOfAllReplicasBefore) {
  run_with({"--logical_replicas=4"}, 3);  // 2.4 passes
  EXPECT_THAT(evaluated_, ElementsAre(2, 3));
  run_with({"--logical_replicas=1", "--allow_inexact"}, 12);  // 3 of them at step 6, 4 at step 11
  EXPECT_THAT(evaluated_, ElementsAre(2, 3, 6, 11, 12));
  EXPECT_THAT(rates_, ElementsAre(1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5));
  EXPECT_EQ(saved("w").item(), -9);
  std::vector<int64_t> kept;
  for (const CheckpointEntry& entry : list_checkpoints(log_dir_)) kept.push_back(entry.step);
  EXPECT_THAT(kept, ElementsAre(2, 3, 6, 11, 12));
}

}  // namespace
}  // namespace mox
