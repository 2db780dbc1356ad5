// What the optimizer keeps of a variable has not seen all updates of its run.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tests/moxing/small_run.h"

namespace mox {
namespace {

namespace fs = std::filesystem;

// Two variables that begin at 0, with a gradient of 1 in every step, under Adam: whose change is the learning
// rate then, in each step.
class UnfrozenRun : public SmallRun {
 protected:
  static constexpr float kRate = 0.001F;

  // Goes on to `steps`, with those frozen in whose names one of `freeze` is found.
  void go_on(int64_t steps, std::vector<std::string> freeze, const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words = {"--threads=2", "--log_level=error"};
    words.insert(words.end(), flags.begin(), flags.end());
    const ScopedConfiguration configuration(words);
    RunSpec s = spec();
    s.freeze = std::move(freeze);
    s.optimizer_fn = get_optimizer_fn(optimizer_, {.learning_rate = kRate});
    s.max_number_of_steps = steps;
    s.model_fn = [](const Inputs& in, ModeKeys) {
      const Tensor w = get_variable("w", {}, zeros()), v = get_variable("v", {}, zeros());
      const Tensor loss = w + v + reduce_sum(in[0]) * 0.0F;
      return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
    };
    run_or_throw(s);
  }
  // How far a variable has gone, in learning rates.
  float way(const std::string& name) const { return -saved(name).values<float>()[0] / kRate; }
  std::map<std::string, std::string> state() const { return load_checkpoint(log_dir_).state; }

  std::string optimizer_ = "adam";
};

TEST_F(UnfrozenRun, AFirstUpdateIsOneOfTheLearningRate) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{},
                                             {"--logical_replicas=2"},
                                             {"--num_devices=2", "--variable_update=replicated"},
                                             {"--num_devices=2", "--variable_update=parameter_server"}}) {
    log_dir_ = fresh_directory("unfrozen");
    go_on(100, {"^v$"}, flags);
    EXPECT_EQ(way("v"), 0);
    go_on(101, {}, flags);
    EXPECT_NEAR(way("v"), 1, 1e-3) << testing::PrintToString(flags);
    EXPECT_NEAR(way("w"), 101, 0.1);
    go_on(110, {}, flags);
    EXPECT_NEAR(way("v"), 10, 1e-2);
  }
}

TEST_F(UnfrozenRun, WhatIsFrozenForATimeGoesOnWhereItWas) {
  go_on(10, {});
  go_on(200, {"^v$"});
  EXPECT_NEAR(way("v"), 10, 1e-2);
  go_on(250, {"^v$"});
  go_on(251, {});
  EXPECT_NEAR(way("v"), 11, 1e-2);
  go_on(300, {"^v$"});
  go_on(301, {});
  EXPECT_NEAR(way("v"), 12, 1e-2);
}

TEST_F(UnfrozenRun, AStopRightAfterChangesNoBit) {
  go_on(100, {"^v$"});
  const std::string other = fresh_directory("unfrozen_at_once");
  fs::copy(log_dir_, other, fs::copy_options::recursive);
  for (const int64_t steps : {101, 102, 120}) go_on(steps, {});
  const Checkpoint stopped = load_checkpoint(log_dir_);
  log_dir_ = other;
  go_on(120, {});
  const Checkpoint at_once = load_checkpoint(log_dir_);
  EXPECT_EQ(largest_difference(stopped, at_once), 0);
  ASSERT_EQ(stopped.optimizer_slots.size(), 4U);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(stopped.optimizer_slots[i].value.values<float>()[0],
              at_once.optimizer_slots[i].value.values<float>()[0]);
  EXPECT_EQ(stopped.state.at("missed_updates"), R"({"v":100})");
  EXPECT_EQ(at_once.state.at("missed_updates"), R"({"v":100})");
}

TEST_F(UnfrozenRun, WithoutSuchAVariableNothingIsKept) {
  go_on(3, {});
  EXPECT_FALSE(state().contains("missed_updates"));
  optimizer_ = "sgd";
  log_dir_ = fresh_directory("unfrozen_sgd");
  go_on(3, {"^v$"});
  go_on(5, {});
  EXPECT_FALSE(state().contains("missed_updates")) << "it keeps nothing that could have missed one";
  EXPECT_NEAR(way("v"), 2, 1e-3);
}

}  // namespace
}  // namespace mox
