// scale_learning_rate in whole runs; on several ranks: tests/distributed.
#include <gmock/gmock.h>

#include <cmath>

#include "runtime/base/log.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using testing::HasSubstr;
using testing::Not;

class ScaleLearningRate : public SmallRun {
 protected:
  struct Outcome {
    double rate = 0;  // that hooks see
    float w = 0;      // it begins at 0 and falls by the rate in each of four steps
    std::string log;
  };

  Outcome run_with(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"--log_level=info", "--threads=2"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ScopedConfiguration configuration(arguments);
    Outcome outcome;
    auto s = spec();
    s.log_dir = fresh_directory("scaled_run");
    s.hooks.push_back(before_run_hook([&](Session& session) { outcome.rate = session.learning_rate(); }));
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_or_throw(s).global_step, 4);
    outcome.log = testing::internal::GetCapturedStderr();
    for (const NamedArray& variable : load_checkpoint(*s.log_dir).variables)
      if (variable.name == "w") outcome.w = variable.value.item();
    return outcome;
  }
};

TEST_F(ScaleLearningRate, LinearIsTheNumberOfReplicas) {
  const Outcome outcome = run_with({"--num_devices=2", "--scale_learning_rate=linear"});
  EXPECT_DOUBLE_EQ(outcome.rate, 2);
  EXPECT_FLOAT_EQ(outcome.w, -8);
  EXPECT_THAT(outcome.log, HasSubstr("the learning rate is 2 times what is given"));
}

TEST_F(ScaleLearningRate, SqrtIsItsSquareRoot) {
  const Outcome outcome = run_with({"--num_devices=2", "--scale_learning_rate=sqrt"});
  EXPECT_DOUBLE_EQ(outcome.rate, std::sqrt(2.0));
  EXPECT_FLOAT_EQ(outcome.w, static_cast<float>(-4 * std::sqrt(2.0)));
  EXPECT_THAT(outcome.log, HasSubstr("the learning rate is 1.414"));
}

TEST_F(ScaleLearningRate, NoneIsTheRateAsGiven) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--num_devices=2"}, {"--num_devices=2", "--scale_learning_rate=none"}}) {
    const Outcome outcome = run_with(flags);
    EXPECT_DOUBLE_EQ(outcome.rate, 1);
    EXPECT_FLOAT_EQ(outcome.w, -4);
    EXPECT_THAT(outcome.log, HasSubstr("the learning rate is as given"));
  }
}

// Not the number of devices: the rate is the same wherever the replicas are.
TEST_F(ScaleLearningRate, CountsReplicasAndNotDevices) {
  for (const char* devices : {"--num_devices=1", "--num_devices=2"}) {
    const Outcome outcome = run_with({devices, "--logical_replicas=4", "--scale_learning_rate=sqrt"});
    EXPECT_DOUBLE_EQ(outcome.rate, 2) << devices;
    EXPECT_FLOAT_EQ(outcome.w, -8) << devices;
    EXPECT_THAT(outcome.log, HasSubstr("the learning rate is 2 times what is given")) << devices;
  }
}

TEST_F(ScaleLearningRate, OneReplicaHasTheRateAsGiven) {
  for (const char* scale : {"linear", "sqrt", "none"}) {
    const Outcome outcome = run_with({"--num_devices=1", "--scale_learning_rate=" + std::string(scale)});
    EXPECT_DOUBLE_EQ(outcome.rate, 1) << scale;
    EXPECT_FLOAT_EQ(outcome.w, -4) << scale;
    EXPECT_THAT(outcome.log, Not(HasSubstr("times what is given"))) << scale;
  }
}

}  // namespace
}  // namespace mox
