#include "moxing/engine/step/loss_scale.h"

#include <gmock/gmock-more-matchers.h>

#include <limits>

#include "moxing/layers/layers.h"
#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using internal::LossScale;
using testing::HasSubstr;

TEST(LossScale, OneIsOff) {
  EXPECT_FALSE(LossScale(1.0, {}).is_on());
  EXPECT_FALSE(LossScale().is_on());
}

TEST(LossScale, AFixedOneStays) {
  LossScale scale(128.0, {});
  EXPECT_TRUE(scale.is_on());
  EXPECT_FALSE(scale.accepts(false));
  for (int64_t i = 0; i < 2 * LossScale::kStepsToDouble; ++i) EXPECT_TRUE(scale.accepts(true));
  EXPECT_EQ(scale.scale(), 128);
  EXPECT_EQ(scale.variable().item(), 128);
  EXPECT_EQ(scale.skipped_steps(), 1);
}

TEST(LossScale, AFixedOneMayBeToldNotToLook) {
  const LossScale scale(128.0, {}, false);
  EXPECT_TRUE(scale.is_on());
  EXPECT_FALSE(scale.may_leave_out());
  EXPECT_TRUE(LossScale(128.0, {}).may_leave_out());
  EXPECT_FALSE(LossScale(1.0, {}).may_leave_out());
}

TEST(LossScale, ADynamicOneHalvesAndDoubles) {
  LossScale scale(std::string("dynamic"), {});
  const Array variable = scale.variable();
  EXPECT_EQ(scale.scale(), 1 << 15);
  EXPECT_FALSE(scale.accepts(false));
  EXPECT_EQ(variable.item(), 1 << 14) << "the variable that the plan reads follows";
  for (int64_t i = 1; i < LossScale::kStepsToDouble; ++i) EXPECT_TRUE(scale.accepts(true));
  EXPECT_EQ(scale.scale(), 1 << 14);
  EXPECT_TRUE(scale.accepts(true));
  EXPECT_EQ(variable.item(), 1 << 15);
}

TEST(LossScale, ADynamicOneStaysWithinItsBounds) {
  LossScale scale(std::string("dynamic"), {.scale = 2});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(scale.accepts(false));
  EXPECT_EQ(scale.scale(), 1);
  for (int64_t i = 0; i < 30 * LossScale::kStepsToDouble; ++i) scale.accepts(true);
  EXPECT_EQ(scale.scale(), LossScale::kLargest);
}

TEST(LossScale, GoesOnFromItsState) {
  LossScale first(std::string("dynamic"), {});
  for (int i = 0; i < 5; ++i) first.accepts(false);
  for (int i = 0; i < 7; ++i) first.accepts(true);
  LossScale second(std::string("dynamic"), first.state());
  EXPECT_EQ(second.state(), first.state());
  EXPECT_EQ(second.scale(), 1 << 10);
  EXPECT_EQ(second.skipped_steps(), 5);
}

TEST(LossScale, GivesUpWhenNothingHelps) {
  LossScale scale(8.0, {});
  for (int64_t i = 1; i < LossScale::kMostSkippedInARow; ++i) EXPECT_FALSE(scale.accepts(false));
  try {
    scale.accepts(false);
    ADD_FAILURE() << "no error";
  } catch (const NumericError& error) {
    EXPECT_THAT(error.what(), HasSubstr("30 steps in a row (loss scale 8)"));
    EXPECT_THAT(error.what(), HasSubstr("loss_scale: dynamic"));
  }
}

TEST(LossScale, FindsWhatIsNotFinite) {
  std::vector<float> values(200000, 3.0f);
  const Team team(2);
  const EnteredTeam entered(team);
  EXPECT_TRUE(internal::are_finite(values, team));
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    values.back() = bad;
    EXPECT_FALSE(internal::are_finite(values, team));
    std::swap(values.back(), values.front());
    EXPECT_FALSE(internal::are_finite(values, team));
    values.front() = 3.0f;
  }
  values.back() = std::numeric_limits<float>::max();
  EXPECT_TRUE(internal::are_finite(values, team));
}

// The gradient of "w" is 1e35, which overflows when it is multiplied by more than 2^11; "applied" counts the
// steps that were not left out.
ModelSpec steep_model(const Inputs& in, ModeKeys mode) {
  const Tensor w = get_variable("w", {}, zeros());
  const Tensor applied = get_variable("applied", {}, zeros(), {.trainable = false});
  if (mode == ModeKeys::TRAIN) update_after_step(applied, applied + 1.0f);
  return {.loss = w * 1e35f + reduce_sum(in[0]) * 0.0f, .log_info = {{"loss", w * 1e35f}}};
}

class LossScaleRun : public SmallRun {
 protected:
  RunSpec steep_spec(int64_t steps) {
    RunSpec spec = this->spec();
    spec.model_fn = steep_model;
    spec.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 1e-35});
    spec.max_number_of_steps = steps;
    return spec;
  }
  static std::vector<std::string> flags(std::vector<std::string> more) {
    more.insert(more.end(), {"--threads=1", "--log_level=error"});
    return more;
  }
};

TEST_F(LossScaleRun, LeavesOutStepsUntilTheGradientsAreFinite) {
  const ScopedConfiguration configuration(flags({"--loss_scale=dynamic"}));
  run_or_throw(steep_spec(10));  // 2^15, 2^14, 2^13 and 2^12 are too much
  EXPECT_NEAR(saved("w").item(), -6, 1e-4);
  EXPECT_EQ(saved("applied").item(), 6) << "what is updated after a step is not when the step is left out";
}

// What is asked of is the sum over the replicas, 2e35 times the scale: 2^11 is too much as well.
TEST_F(LossScaleRun, SeveralReplicasLeaveOutTheSameSteps) {
  const ScopedConfiguration configuration(flags({"--loss_scale=dynamic", "--logical_replicas=2"}));
  run_or_throw(steep_spec(10));
  EXPECT_NEAR(saved("w").item(), -5, 1e-4);
  EXPECT_EQ(saved("applied").item(), 5);
}

TEST_F(LossScaleRun, GoesOnWithTheScaleOfTheCheckpoint) {
  const ScopedConfiguration configuration(flags({"--loss_scale=dynamic"}));
  run_or_throw(steep_spec(2));
  EXPECT_EQ(saved("applied").item(), 0);
  run_or_throw(steep_spec(10));
  EXPECT_NEAR(saved("w").item(), -6, 1e-4);
  EXPECT_EQ(saved("applied").item(), 6);
}

// Adam's first steps are corrected for their number: a step that was left out is none.
TEST_F(LossScaleRun, DoesNotCountStepsThatAreLeftOutAsUpdates) {
  const ScopedConfiguration configuration(flags({"--loss_scale=dynamic"}));
  RunSpec spec = steep_spec(5);
  spec.optimizer_fn = get_optimizer_fn("adam", {.learning_rate = 0.5, .epsilon = 1e-30});
  spec.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = steep_model(in, mode);
    const Tensor v = get_variable("v", {}, zeros());
    model.loss = model.loss + v;
    return model;
  };
  run_or_throw(spec);
  EXPECT_NEAR(saved("v").item(), -0.5, 1e-5)
      << "the first update of a constant gradient moves by the learning rate";
}

// Epochs follow the data, and the samples of a step that was left out are used up.
TEST_F(LossScaleRun, SchedulesCountStepsThatAreLeftOut) {
  const ScopedConfiguration configuration(flags({"--loss_scale=dynamic"}));
  RunSpec spec = steep_spec(5);  // the first four are left out
  spec.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = piecewise_constant({4}, {0, 1e-35})});
  run_or_throw(spec);
  EXPECT_NEAR(saved("w").item(), -1, 1e-5);
}

// Adam's updates depend on their number, which the copies of all lanes must agree on.
TEST_F(LossScaleRun, CopiesOfTheVariablesAgreeAfterStepsThatWereLeftOut) {
  std::vector<std::string> digests;
  for (const char* scheme : {"replicated_host", "replicated", "parameter_server"}) {
    RunSpec spec = steep_spec(20);
    spec.log_dir = fresh_directory("loss_scale");
    spec.optimizer_fn = get_optimizer_fn("adam", {.learning_rate = 0.1, .epsilon = 1e-30});
    spec.model_fn = [](const Inputs& in, ModeKeys mode) {
      ModelSpec model = steep_model(in, mode);
      // A gradient that differs from lane to lane once the copies of v do.
      const Tensor v = get_variable("v", {}, zeros());
      model.loss = model.loss + square(v - reduce_mean(in[0]));
      return model;
    };
    const ScopedConfiguration configuration({"--threads=2", "--num_devices=2", "--logical_replicas=2",
                                             "--log_level=error", "--loss_scale=dynamic",
                                             std::string("--variable_update=") + scheme});
    run_or_throw(spec);
    digests.push_back(checkpoint_digest(*spec.log_dir));
  }
  EXPECT_EQ(digests[1], digests[0]);
  EXPECT_EQ(digests[2], digests[0]);
}

TEST_F(LossScaleRun, AFixedScaleThatIsTooLargeEndsTheRun) {
  const ScopedConfiguration configuration(flags({"--loss_scale=4096"}));
  EXPECT_THAT(message_of_run<NumericError>(steep_spec(100)), HasSubstr("loss scale 4096"));
}

// The gradient of "w" is 1, and in the step after global step 2 so large that 1024 times it overflows.
ModelSpec model_with_a_spike(const Inputs& in, ModeKeys) {
  const Tensor w = get_variable("w", {}, zeros());
  const Tensor slope = get_variable("slope", {}, ones(), {.trainable = false});
  return {.loss = w * slope + reduce_sum(in[0]) * 0.0f, .log_info = {{"loss", w + 0.0f}}};
}

RunSpec with_a_spike(RunSpec spec) {
  spec.model_fn = model_with_a_spike;
  spec.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 1});
  spec.max_number_of_steps = 6;
  auto hook = std::make_shared<CallbackHook>();
  hook->on_before = [](Session& session) {
    session.set_variable("slope", Array::scalar(session.global_step() == 2 ? 1e36f : 1.0f));
  };
  spec.hooks = {hook};
  return spec;
}

TEST_F(LossScaleRun, AFixedScaleDropsTheUpdateThatOverflows) {
  const ScopedConfiguration configuration(flags({"--loss_scale=1024"}));
  run_or_throw(with_a_spike(spec()));
  EXPECT_EQ(saved("w").item(), -5);
}

TEST_F(LossScaleRun, OrAppliesItWhichEndsTheRun) {
  for (const char* clipping : {"0", "1e30"})
    for (const char* scheme : {"replicated_host", "replicated", "parameter_server"}) {
      const ScopedConfiguration configuration(
          {"--threads=2", "--num_devices=2", "--logical_replicas=2", "--log_level=error", "--loss_scale=1024",
           "--drop_overflow_update=false", std::string("--clip_gradient_norm=") + clipping,
           std::string("--variable_update=") + scheme});
      RunSpec spec = with_a_spike(this->spec());
      spec.log_dir = fresh_directory("loss_scale");
      EXPECT_THAT(message_of_run<NumericError>(spec), HasSubstr("at global step 4")) << scheme;
      spec = with_a_spike(this->spec());
      spec.log_dir = fresh_directory("loss_scale");
      spec.max_number_of_steps = 3;
      EXPECT_THAT(message_of_run<NumericError>(spec), HasSubstr("is not finite")) << "nothing of it is saved";
    }
}

TEST_F(LossScaleRun, ADynamicScaleNeedsToLook) {
  const ScopedConfiguration configuration(flags({"--loss_scale=dynamic", "--drop_overflow_update=false"}));
  EXPECT_THAT(message_of_run<ConfigError>(spec()), HasSubstr("drop_overflow_update is false"));
}

TEST_F(LossScaleRun, ValuesOutOfRangeAreRefused) {
  for (const char* value : {"0.5", "1e9", "static"}) {
    try {
      const ScopedConfiguration configuration({std::string("--loss_scale=") + value});
      ADD_FAILURE() << value << " is accepted";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("loss_scale must be 1 to 16777216, or dynamic, got"));
    }
  }
}

ModelSpec small_network(const Inputs& in, ModeKeys mode) {
  Tensor x = layers::dense(in[0] / 10.0f, 16, {.activation = relu});
  x = layers::batch_norm(x, mode);
  const Tensor loss = reduce_mean(square(layers::dense(x, 1) - 1.0f));
  return {.loss = loss, .log_info = {{"loss", loss}}};
}

// Multiplying by a power of two, and dividing by it, loses nothing.
TEST_F(LossScaleRun, APowerOfTwoGivesTheSameBits) {
  std::vector<std::string> digests;
  for (const char* scale : {"1", "1024", "dynamic"})
    for (const char* clipping : {"0", "0.01"}) {
      RunSpec spec = this->spec();
      spec.log_dir = fresh_directory("loss_scale");
      spec.model_fn = small_network;
      spec.optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.1});
      const ScopedConfiguration configuration(
          flags({std::string("--loss_scale=") + scale, std::string("--clip_gradient_norm=") + clipping}));
      run_or_throw(spec);
      digests.push_back(checkpoint_digest(*spec.log_dir));
    }
  EXPECT_NE(digests[0], digests[1]);
  for (size_t i = 2; i < digests.size(); ++i) EXPECT_EQ(digests[i], digests[i % 2]);
}

TEST_F(LossScaleRun, WhereNothingOverflowsDroppingChangesNoBit) {
  std::vector<std::string> digests;
  for (const char* drops : {"true", "false"})
    for (const char* scheme : {"replicated_host", "replicated", "parameter_server"}) {
      RunSpec spec = this->spec();
      spec.log_dir = fresh_directory("loss_scale");
      spec.model_fn = small_network;
      spec.optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.1});
      const ScopedConfiguration configuration(
          {"--threads=2", "--num_devices=2", "--logical_replicas=2", "--log_level=error", "--loss_scale=1000",
           std::string("--drop_overflow_update=") + drops, std::string("--variable_update=") + scheme});
      run_or_throw(spec);
      digests.push_back(checkpoint_digest(*spec.log_dir));
    }
  for (const std::string& digest : digests) EXPECT_EQ(digest, digests[0]);
}

}  // namespace
}  // namespace mox
