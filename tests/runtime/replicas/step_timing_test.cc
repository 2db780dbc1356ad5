#include "runtime/replicas/step_timing.h"

#include <gtest/gtest.h>

#include <vector>

#include "moxing/job/forecast.h"
#include "runtime/base/error.h"
#include "tests/support/temporary_directory.h"

namespace mox::internal {
namespace {

StepTiming::Clock::time_point at(double seconds) {
  return StepTiming::Clock::time_point() +
         std::chrono::duration_cast<StepTiming::Clock::duration>(std::chrono::duration<double>(seconds));
}

// Steps of one second of computing. Two buckets of 4 MB are ready after 0.5 and 1 s; the communication thread
// has computed 0.2 s beside the lanes, of them 0.05 until the first bucket was ready, and has sent it
// in 4 messages.
void add_steps(StepTiming& timing, int steps) {
  for (int step = 0; step < steps; ++step) {
    const double begun = 10 * step, worked = 0.2 * step;
    const int64_t messages = 4 * step, bytes = int64_t{4'000'000} * step;
    const std::vector<BucketTimes> buckets = {{at(begun + 0.5), at(begun + 0.8), 1'000'000, worked + 0.05},
                                              {at(begun + 1), at(begun + 1.25), 1'000'000, worked + 0.2}};
    timing.add({at(begun), {worked, messages, bytes}},
               {at(begun + 1), {worked + 0.2, messages + 4, bytes + 4'000'000}}, at(begun + 1.25), buckets);
  }
}

class StepTimings : public testing::Test {
 protected:
  StepProfile profile_of(const StepTiming& timing, const StepTiming::Job& job) const {
    const std::string path = directory_.path() + "/profile.json";
    timing.write_profile(path, job);
    return read_step_profile(path);
  }

  TemporaryDirectory directory_;
};

TEST_F(StepTimings, TakeTheWorkOfSendingOutOfTheComputing) {
  StepTiming timing(/*shares_cores=*/true);
  add_steps(timing, 5);
  const StepProfile profile =
      profile_of(timing, {.ranks = 2, .samples = 32, .latency_s = 1e-5, .message_work_s = 0.01});
  EXPECT_EQ(profile.node_samples, 16);
  EXPECT_NEAR(profile.compute_s, 0.8, 1e-6);
  ASSERT_EQ(profile.buckets.size(), 2U);
  EXPECT_NEAR(profile.buckets[0].ready_s, 0.45, 1e-6);
  EXPECT_NEAR(profile.buckets[1].ready_s, 0.8, 1e-6);
  EXPECT_EQ(profile.buckets[1].bytes, 4'000'000);
  ASSERT_TRUE(profile.sending_work);
  EXPECT_TRUE(profile.sending_work->shares_cores);
  EXPECT_EQ(profile.sending_work->seconds_per_message, 0.01);
  // 0.2 s, of which four messages have taken 0.04, for 4 MB.
  EXPECT_NEAR(profile.sending_work->seconds_per_byte, 0.16 / 4e6, 1e-12);
}

TEST_F(StepTimings, LeaveTheComputingAsItIsBesideCoresThatSend) {
  StepTiming timing(/*shares_cores=*/false);
  add_steps(timing, 5);
  const StepProfile profile = profile_of(timing, {.ranks = 2, .samples = 32});
  EXPECT_NEAR(profile.compute_s, 1, 1e-6);
  EXPECT_NEAR(profile.buckets[0].ready_s, 0.5, 1e-6);
  ASSERT_TRUE(profile.sending_work);
  EXPECT_FALSE(profile.sending_work->shares_cores);
  EXPECT_NEAR(profile.sending_work->seconds_per_byte, 0.2 / 4e6, 1e-12);
}

TEST_F(StepTimings, SayNothingOfWorkThatWasNotSeen) {
  StepTiming timing(true);
  for (int step = 0; step < 5; ++step) {
    const std::vector<BucketTimes> buckets = {{at(step + 0.5), at(step + 0.5), 1'000'000, 0}};
    timing.add({at(step), {}}, {at(step + 0.5), {}}, at(step + 0.5), buckets);
  }
  EXPECT_FALSE(profile_of(timing, {.samples = 1}).sending_work);
}

TEST_F(StepTimings, TellWhatIsHidden) {
  StepTiming timing(true);
  add_steps(timing, 2);
  EXPECT_NEAR(timing.sending_seconds(), 2 * (0.3 + 0.25), 1e-6);
  EXPECT_NEAR(timing.exposed_seconds(), 2 * 0.25, 1e-6);
}

TEST_F(StepTimings, NeedSomeSteps) {
  StepTiming timing(true);
  add_steps(timing, 4);
  EXPECT_THROW(timing.write_profile(directory_.path() + "/profile.json", {.samples = 1}), FailedPrecondition);
}

}  // namespace
}  // namespace mox::internal
