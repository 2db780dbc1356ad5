// What must not change in silence: frozen variables, their moving averages, penalties that are counted twice,
// batch normalisation over one value, checkpoints of other networks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/layers/layers.h"
#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ParameterGroup frozen_backbone() {
  return {.name = "frozen",
          .matches = [](std::string_view name, const Shape&) { return is_in_scope(name, "backbone"); },
          .learning_rate_multiplier = 0};
}

ModelSpec network(const Inputs& in, ModeKeys mode, const std::vector<std::string>& var_scopes) {
  Tensor x = in[0];
  {
    const auto scope = var_scope("backbone");
    x = layers::dense(x, 3, {.name = "fc"});
    x = layers::batch_norm(x, mode, {.name = "bn", .momentum = 0.5f});
  }
  const Tensor loss = reduce_mean(square(layers::dense(x, 1, {.name = "head"}) - 1.0f));
  return {.loss = loss, .var_scopes = var_scopes, .log_info = {{"loss", loss}}};
}

class FrozenRun : public SmallRun {
 protected:
  float moving_mean_after(const std::vector<std::string>& var_scopes, std::vector<ParameterGroup> groups,
                          const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words = {"--threads=1", "--log_level=error"};
    words.insert(words.end(), flags.begin(), flags.end());
    const ScopedConfiguration configuration(words);
    log_dir_ = fresh_directory("frozen_run");
    RunSpec s = spec();
    s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.01, .parameter_groups = std::move(groups)});
    s.model_fn = [&](const Inputs& in, ModeKeys mode) { return network(in, mode, var_scopes); };
    run_or_throw(s);
    return saved("backbone/bn/moving_mean").values<float>()[0];
  }
};

TEST_F(FrozenRun, MovingAveragesOutsideOfVarScopesStay) {
  EXPECT_NE(moving_mean_after({}, {}), 0);
  EXPECT_EQ(moving_mean_after({"head"}, {}), 0);
  EXPECT_NE(moving_mean_after({"head"}, {}, {"--frozen_batch_norm=training"}), 0);
}

// By default vectors are not decayed, and here there is nothing else.
TEST_F(FrozenRun, AWeightDecayThatDecaysNothingIsSaid) {
  const auto said_with = [this](const std::vector<std::string>& flags) {
    std::vector<std::string> words = {"--threads=1", "--log_level=warning", "--optimizer.weight_decay=0.1"};
    words.insert(words.end(), flags.begin(), flags.end());
    const ScopedConfiguration configuration(words);
    log_dir_ = fresh_directory("idle_decay");
    testing::internal::CaptureStderr();
    run_or_throw(spec());
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said_with({}),
              AllOf(HasSubstr("the weight decay is 0.1, and none of the 1 trained variables (w)"),
                    HasSubstr("\"pattern=* weight_decay=0.1\"")));
  EXPECT_EQ(said_with({"--optimizer.groups=pattern=* weight_decay=0.1"}), "");
  EXPECT_EQ(said_with({"--optimizer.weight_decay=0"}), "");
}

// Else the variables that it means would stay as they are, without a word.
TEST_F(FrozenRun, AScopeOfNoTrainableVariableIsRefused) {
  auto s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) { return network(in, mode, {"head", "bakcbone"}); };
  EXPECT_THAT(message_of_run<InvalidArgument>(s),
              AllOf(HasSubstr("var_scopes has 'bakcbone'"), HasSubstr("backbone/fc/kernel")));
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    return network(in, mode, {"head", "backbone/bn/moving_mean"});
  };
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("of the 6 trainable variables"));
}

TEST_F(FrozenRun, ALearningRateTimesZeroIsFrozenToo) {
  EXPECT_EQ(moving_mean_after({}, {frozen_backbone()}), 0);
  EXPECT_EQ(saved("backbone/bn/moving_variance").values<float>()[0], 1);
  EXPECT_NE(moving_mean_after({}, {frozen_backbone()}, {"--frozen_batch_norm=training"}), 0);
}

TEST_F(SmallRun, PenaltiesThatTheLossHoldsAreNotAddedAgain) {
  const auto decayed = [&](size_t by_hand) {
    log_dir_ = fresh_directory("penalties");
    RunSpec s = spec();
    s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.1});
    s.max_number_of_steps = 1;
    s.model_fn = [&](const Inputs& in, ModeKeys) {
      const Tensor w = get_variable("w", {}, ones(), {.regularizer = l2_regularizer(1.0f)});
      // A penalty that is the variable itself is part of every loss that uses it, and counts all the same.
      const Tensor v = get_variable("v", {}, ones(), {.regularizer = [](const Tensor& t) { return t; }});
      Tensor loss = reduce_sum(in[0]) * 0.0f * w * v;
      const auto penalties = get_collection("regularization_losses");
      for (size_t i = 0; i < by_hand; ++i) loss = loss + penalties[i];
      return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
    };
    run_or_throw(s);
    EXPECT_FLOAT_EQ(saved("v").values<float>()[0], 0.9f);
    return saved("w").values<float>()[0];
  };
  for (const size_t by_hand : {0, 1, 2}) EXPECT_FLOAT_EQ(decayed(by_hand), 0.9f) << by_hand;
}

// Each of the two is right by itself, and ported programs have both.
TEST_F(SmallRun, VariablesThatAreDecayedTwiceAreNamed) {
  const auto warnings = [&](const std::string& optimizer, double decay, const Regularizer& regularizer,
                            const std::vector<std::string>& freeze = {}) {
    log_dir_ = fresh_directory("decays");
    RunSpec s = spec();
    s.freeze = freeze;
    s.optimizer_fn = get_optimizer_fn(optimizer, {.learning_rate = 0.1, .weight_decay = decay});
    s.model_fn = [&](const Inputs& in, ModeKeys) {
      const Tensor w = get_variable("w", {1, 1}, ones(), {.regularizer = regularizer});
      const Tensor bias = get_variable("bias", {1}, ones(), {.regularizer = regularizer});
      const Tensor loss = reduce_mean(matmul(in[0], w) + bias + get_variable("v", {1, 1}, ones()));
      return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
    };
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warnings("sgd", 0.5, l2_regularizer(1)),
              AllOf(HasSubstr("1 of the 3 trained variables are decayed twice (w)"),
                    HasSubstr("a weight decay of 0.5"), HasSubstr("optimizer.weight_decay=0")));
  EXPECT_THAT(warnings("adamw", 0.5, l2_regularizer(1)), HasSubstr("the decoupled one"));
  EXPECT_THAT(warnings("sgd", 0.5, [](const Tensor& t) { return reduce_sum(square(t)); }),
              HasSubstr("decayed twice"));
  EXPECT_EQ(warnings("sgd", 0, l2_regularizer(1)), "");
  EXPECT_EQ(warnings("sgd", 0.5, {}), "");
  EXPECT_EQ(warnings("sgd", 0.5, l1_regularizer(1)), "") << "another penalty";
  EXPECT_THAT(warnings("sgd", 0.5, l2_regularizer(1), {"^w$"}), Not(HasSubstr("decayed")))
      << "w is not trained";
}

TEST_F(SmallRun, BatchNormalisationOverOneValueIsRefused) {
  RunSpec s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) { return network(in, mode, {}); };
  s.batch_size = 1;
  EXPECT_THAT(message_of_run<InvalidArgument>(s), AllOf(HasSubstr("over one value a channel"),
                                                        HasSubstr("backbone/bn"), HasSubstr("batch_size")));
  const ScopedConfiguration configuration({"--threads=1", "--log_level=error", "--sync_batch_norm"});
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("over one value a channel"));
}

TEST_F(SmallRun, ReplicasOfOneSampleMayNormaliseTogether) {
  const ScopedConfiguration configuration(
      {"--threads=1", "--log_level=error", "--sync_batch_norm", "--logical_replicas=2"});
  RunSpec s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) { return network(in, mode, {}); };
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.01});
  s.batch_size = 1;
  EXPECT_EQ(run_or_throw(s).global_step, 4);
  EXPECT_GT(saved("backbone/bn/moving_variance").values<float>()[0], 0.0f);
}

TEST_F(SmallRun, AShortBatchOfOneSampleDoesNotPullTheVariance) {
  const auto variance_after = [&](int64_t samples, int64_t batch_size, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--threads=1", "--log_level=error"});
    const ScopedConfiguration configuration(flags);
    log_dir_ = fresh_directory("short_batch");
    RunSpec s = spec();
    s.input_fn = [samples](ModeKeys) { return counting_data(samples); };
    s.model_fn = [](const Inputs& in, ModeKeys mode) { return network(in, mode, {}); };
    s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.0});
    s.batch_size = batch_size;
    s.max_number_of_steps = 100;
    run_or_throw(s);
    return saved("backbone/bn/moving_variance").values<float>()[0];
  };
  EXPECT_EQ(variance_after(5, 4, {}), variance_after(4, 4, {}));
  // One of two replicas has the sample, and the other none.
  EXPECT_EQ(variance_after(9, 4, {"--logical_replicas=2"}), variance_after(8, 4, {"--logical_replicas=2"}));
  const std::vector<std::string> together = {"--logical_replicas=2", "--sync_batch_norm"};
  EXPECT_EQ(variance_after(9, 4, together), variance_after(8, 4, together));
  EXPECT_EQ(variance_after(3, 1, together), variance_after(2, 1, together)) << "of a full batch of one";
}

TEST_F(SmallRun, UpdatesAfterAStepThatAShortBatchDoesOtherwiseAreRefused) {
  const ScopedConfiguration configuration({"--threads=1", "--log_level=error", "--logical_replicas=2"});
  RunSpec s = spec();
  s.input_fn = [](ModeKeys) { return counting_data(5); };
  s.model_fn = [](const Inputs& in, ModeKeys) {
    const Tensor w = get_variable("w", {}, ones());
    const Tensor seen = get_variable("seen", {}, zeros(), {.trainable = false});
    if (in[0].shape()[0] == 2) update_after_step(seen, seen + 1.0f);
    return ModelSpec{.loss = reduce_mean(in[0] * w)};
  };
  EXPECT_THAT(message_of_run<FailedPrecondition>(s),
              AllOf(HasSubstr("smaller batch"), HasSubstr("update_after_step")));
}

TEST_F(SmallRun, ACheckpointWithoutAnyOfTheVariablesIsRefused) {
  run_or_throw(spec());
  RunSpec other = spec();
  other.checkpoint_path = log_dir_;
  other.log_dir = fresh_directory("other_network");
  other.model_fn = [](const Inputs& in, ModeKeys mode) { return network(in, mode, {}); };
  EXPECT_THAT(message_of_run<ConfigError>(other),
              AllOf(HasSubstr("no variable in common"), HasSubstr("the checkpoint has 1 (w)"),
                    HasSubstr("backbone/bn/moving_mean"), HasSubstr(log_dir_)));
}

TEST_F(SmallRun, AnEvaluationOfAnotherNetworkNamesBothInShort) {
  run_or_throw(spec());
  RunSpec other = spec();
  other.run_mode = ModeKeys::EVAL;
  other.model_fn = [](const Inputs& in, ModeKeys mode) { return network(in, mode, {}); };
  EXPECT_THAT(message_of_run<NotFound>(other),
              AllOf(HasSubstr("no value for 8 of the model's 8 variables"), HasSubstr("and 3 more"),
                    HasSubstr("no counterpart in the model for: w")));
}

}  // namespace
}  // namespace mox
