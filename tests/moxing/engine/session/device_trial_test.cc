// num_devices: auto.
#include "moxing/engine/session/internal/training/device_trial.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/base/error.h"
#include "runtime/base/resource_limits.h"
#include "tests/moxing/small_run.h"

namespace mox::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RunSettings settings_of(int threads, int64_t replicas = 0, int threads_per_device = 0) {
  RunSettings settings;
  settings.cores.threads = threads;
  settings.distribution.logical_replicas = replicas;
  settings.cores.threads_per_device = threads_per_device;
  return settings;
}

TEST(PossibleDevices, DivideTheCores) {
  EXPECT_THAT(possible_devices(settings_of(6), {}, {}, 1), ElementsAre(1, 2, 3, 6));
  EXPECT_THAT(possible_devices(settings_of(6, 0, 2), {}, {}, 1), ElementsAre(1, 2, 3));
}

TEST(PossibleDevices, DivideTheReplicas) {
  EXPECT_THAT(possible_devices(settings_of(8, 4), {}, {}, 1), ElementsAre(1, 2, 4));
  EXPECT_THAT(possible_devices(settings_of(8, 4), {}, {}, 2), ElementsAre(1, 2));
  EXPECT_THAT(possible_devices(settings_of(8, 1), {}, {}, 1), ElementsAre(1));
  EXPECT_THAT(possible_devices(settings_of(8, 4), {}, {}, 3), IsEmpty());
}

TEST(PossibleDevices, GiveTheTeamsOfTheCheckpointTheirThreads) {
  StartingPoint continued;
  continued.kind = StartingPoint::Kind::kContinued;
  TrainingState kept;
  kept.logical_replicas = 4;
  kept.threads = 2;
  EXPECT_THAT(possible_devices(settings_of(4), continued, kept, 1), ElementsAre(1, 2));
}

TEST(PossibleDevices, DivideTheReplicasThatAnInexactRunGoesOnWith) {
  StartingPoint continued;
  continued.kind = StartingPoint::Kind::kContinued;
  TrainingState kept;
  kept.logical_replicas = 4;
  RunSettings settings = settings_of(6, 3);
  EXPECT_THAT(possible_devices(settings, continued, kept, 1), ElementsAre(1, 2)) << "it will be refused";
  settings.distribution.allow_inexact = true;
  EXPECT_THAT(possible_devices(settings, continued, kept, 1), ElementsAre(1, 3));
}

class AutomaticDevices : public SmallRun {
 protected:
  // What the run logs.
  std::string log_of(std::vector<std::string> flags, int64_t steps) {
    flags.insert(flags.begin(), {"--num_devices=auto", "--threads=2"});
    const ScopedConfiguration configuration(flags);
    RunSpec run = spec();
    run.max_number_of_steps = steps;
    testing::internal::CaptureStderr();
    run_or_throw(run);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(AutomaticDevices, AreMeasuredSaidAndKept) {
  EXPECT_THAT(log_of({}, 4), testing::ContainsRegex(
                                 "num_devices auto: [12] \\(samples/s with 1: [0-9.e+]+, 2: [0-9.e+]+\\)"));
  const Checkpoint first = load_checkpoint(log_dir_);
  const TrainingState state = from_checkpoint_state(first, log_dir_);
  EXPECT_THAT(state.devices, testing::AnyOf(1, 2));
  EXPECT_EQ(state.logical_replicas, state.devices) << "where none are given, each device has one";
  EXPECT_THAT(log_of({}, 8), HasSubstr("num_devices auto: " + std::to_string(state.devices) + ", as before"));
  EXPECT_EQ(from_checkpoint_state(load_checkpoint(log_dir_), log_dir_).logical_replicas,
            state.logical_replicas);
}

TEST_F(AutomaticDevices, LeaveTheResultAsItIsWhereReplicasAreGiven) {
  log_of({"--logical_replicas=2"}, 6);
  const float automatic = saved("w").values<float>()[0];
  log_dir_ = fresh_directory("given");
  const ScopedConfiguration configuration(
      {"--num_devices=1", "--threads=2", "--logical_replicas=2", "--log_level=error"});
  RunSpec run = spec();
  run.max_number_of_steps = 6;
  run_or_throw(run);
  EXPECT_EQ(saved("w").values<float>()[0], automatic);
}

TEST_F(AutomaticDevices, AreNotMeasuredWhereThereIsNoChoice) {
  EXPECT_THAT(log_of({"--logical_replicas=1"}, 2),
              HasSubstr("num_devices auto: 1, the only number that is possible"));
}

TEST_F(AutomaticDevices, IsTheOnlyWordThatIsNoNumber) {
  EXPECT_THROW(ScopedConfiguration({"--num_devices=many"}), ConfigError);
  const ScopedConfiguration configuration({"--num_devices=1.5", "--log_level=error"});
  EXPECT_THAT(message_of_run<InvalidArgument>(spec()), HasSubstr("whole number or auto"));
}

class AutomaticThreads : public SmallRun {
 protected:
  AutomaticThreads() { ::setenv("OMP_NUM_THREADS", "2", 1); }
  ~AutomaticThreads() override { ::unsetenv("OMP_NUM_THREADS"); }

  std::string log_of(std::vector<std::string> flags, int64_t steps) {
    flags.insert(flags.begin(), "--threads=auto");
    const ScopedConfiguration configuration(flags);
    RunSpec run = spec();
    run.max_number_of_steps = steps;
    testing::internal::CaptureStderr();
    run_or_throw(run);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(AutomaticThreads, AreMeasuredSaidAndKept) {
  EXPECT_THAT(log_of({}, 4), testing::ContainsRegex(
                                 "threads auto: [12] \\(samples/s with [12]: [0-9.e+]+, [12]: [0-9.e+]+\\)"));
  const int threads = from_checkpoint_state(load_checkpoint(log_dir_), log_dir_).threads;
  EXPECT_THAT(threads, testing::AnyOf(1, 2));
  EXPECT_THAT(log_of({}, 8), HasSubstr("threads auto: " + std::to_string(threads) + ", as before"));
}

// Each of the two replicas has one thread, and the run two.
TEST_F(AutomaticThreads, AreKeptWhereReplicasShareThem) {
  const auto given_two = [&] {
    const ScopedConfiguration configuration({"--threads=2", "--logical_replicas=2", "--log_level=error"});
    RunSpec run = spec();
    run.max_number_of_steps = 4;
    run_or_throw(run);
  };
  given_two();
  EXPECT_THAT(log_of({}, 8), HasSubstr("threads auto: 2, as before"));
  log_dir_ = fresh_directory("older");
  given_two();
  Checkpoint older = load_checkpoint(log_dir_);
  older.state.erase("process_threads");
  save_checkpoint(log_dir_, older);
  EXPECT_THAT(log_of({}, 8), HasSubstr("samples/s with")) << "it does not tell how many there were";
}

TEST_F(AutomaticThreads, AndDevicesAreNotMeasuredAtOnce) {
  const ScopedConfiguration configuration({"--threads=auto", "--num_devices=auto", "--log_level=error"});
  EXPECT_THAT(message_of_run<InvalidArgument>(spec()), HasSubstr("threads and num_devices are both auto"));
}

TEST_F(AutomaticThreads, OfTheEnvironmentAreTheDefault) {
  const std::string threads = std::to_string(available_cores() + 1);
  const auto log_with = [&](const std::vector<std::string>& flags) {
    const ScopedConfiguration configuration(flags);
    testing::internal::CaptureStderr();
    run_or_throw(spec());
    return testing::internal::GetCapturedStderr();
  };
  const std::string said = "threads: " + threads + ", as OMP_NUM_THREADS says";
  ::setenv("OMP_NUM_THREADS", threads.c_str(), 1);
  EXPECT_THAT(log_with({}), HasSubstr(said));
  EXPECT_THAT(log_with({"--threads=1"}), Not(HasSubstr(said))) << "what is given counts";
  // By level of nesting, and with blanks, as OpenMP takes it.
  for (const std::string& given : {threads + ",1", " " + threads + " ", threads + " , 1"}) {
    ::setenv("OMP_NUM_THREADS", given.c_str(), 1);
    EXPECT_THAT(log_with({}), HasSubstr(said));
  }
}

TEST_F(AutomaticThreads, OfTheEnvironmentMustBeANumber) {
  ::setenv("OMP_NUM_THREADS", "many", 1);
  const ScopedConfiguration configuration({"--log_level=error"});
  EXPECT_THAT(message_of_run<InvalidArgument>(spec()), HasSubstr("OMP_NUM_THREADS is 'many'"));
}

}  // namespace
}  // namespace mox::internal
