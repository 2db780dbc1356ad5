#include "moxing/job/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/error.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

// 100 ms of computing, 80 MB ready in two halves after 50 and 100 ms.
StepProfile steady_profile() {
  return {.source = "made up",
          .ranks = 1,
          .node_samples = 10,
          .compute_s = 0.1,
          .jitter = {1.0},
          .buckets = {{40'000'000, 0.05}, {40'000'000, 0.1}},
          .latency_s = 0};
}

constexpr ForecastLink kLink{.bits_per_second = 8e9, .efficiency = 1, .latency_s = 0};  // 1 GB/s

TEST(Forecast, OneNodeSendsNothing) {
  const Forecast result = forecast_step(steady_profile(), 1, kLink);
  EXPECT_NEAR(result.step_s, 0.1, 1e-9);
  EXPECT_NEAR(result.speed_up, 1, 1e-9);
  EXPECT_NEAR(result.samples_per_second, 100, 1e-6);
  EXPECT_EQ(result.exposed_s, 0);
  EXPECT_EQ(result.limit, "compute");
}

TEST(Forecast, TwoNodesSendEveryByteOnce) {
  // 40 ms from 50 to 90 are hidden; 40 ms from 100 to 140 are not.
  const Forecast result = forecast_step(steady_profile(), 2, kLink);
  EXPECT_NEAR(result.step_s, 0.14, 1e-6);
  EXPECT_NEAR(result.exposed_s, 0.04, 1e-6);
  EXPECT_NEAR(result.speed_up, 2 * 0.1 / 0.14, 1e-6);
  EXPECT_EQ(result.limit, "bandwidth");
}

TEST(Forecast, ABusyLinkKeepsTheNextBucketWaiting) {
  // At 0.5 GB/s the first half is on the link from 50 to 130 ms, the second until 210.
  const Forecast result = forecast_step(steady_profile(), 2, {.bits_per_second = 4e9, .efficiency = 1});
  EXPECT_NEAR(result.step_s, 0.21, 1e-6);
}

TEST(Forecast, ManyNodesSendTwiceAsMuch) {
  const Forecast result = forecast_step(steady_profile(), 1000, {.bits_per_second = 4e9, .efficiency = 0.5});
  // 80 MB * 2 * 0.999 at 0.25 GB/s, from 50 ms on.
  EXPECT_NEAR(result.step_s, 0.05 + 0.08 * 2 * 0.999 / 0.25, 1e-6);
}

TEST(Forecast, SixMessagesOfASumFollowOneAnother) {
  ForecastLink slow = kLink;
  slow.latency_s = 0.01;
  EXPECT_NEAR(forecast_step(steady_profile(), 2, slow).step_s, 0.14 + 0.06, 1e-6);
  slow.bits_per_second = 8e15;
  const Forecast result = forecast_step(steady_profile(), 4, slow);
  EXPECT_NEAR(result.step_s, 0.1 + 0.06, 1e-6);
  EXPECT_EQ(result.limit, "latency");
}

TEST(Forecast, AllWaitForTheSlowest) {
  StepProfile profile = steady_profile();
  profile.buckets.clear();
  profile.jitter = {1.0, 1.0, 1.0, 1.0, 2.0};  // a quarter of the distribution lies between 1 and 2, evenly
  const Forecast one = forecast_step(profile, 1, kLink), many = forecast_step(profile, 1000, kLink);
  EXPECT_NEAR(one.step_s, 0.1125, 0.002);  // 1 + 1/4 * 1/2
  EXPECT_NEAR(many.step_s, 0.2, 0.002);
  EXPECT_EQ(many.limit, "jitter");
  EXPECT_NEAR(many.speed_up, 1000 * one.step_s / many.step_s, 1e-6);
}

// 0.5 ns a byte: 20 ms of a processor for each half.
StepProfile profile_with_work(bool shares_cores) {
  StepProfile profile = steady_profile();
  profile.sending_work = {.seconds_per_byte = 0.5e-9, .shares_cores = shares_cores};
  return profile;
}

TEST(Forecast, WhatSendingComputesIsLostToTheComputing) {
  // ms    0 -  50  computes 50; the first half is ready
  //      50 -  90  sends it; computes 20 beside it
  //      90 - 120  computes the last 30; the second half is ready
  //     120 - 160  sends it
  const Forecast result = forecast_step(profile_with_work(true), 2, kLink);
  EXPECT_NEAR(result.step_s, 0.16, 1e-6);
  EXPECT_NEAR(result.exposed_s, 0.04, 1e-6);
  EXPECT_NEAR(result.speed_up, 2 * 0.1 / 0.16, 1e-6);
}

TEST(Forecast, ComputingThatEndsWhileABucketIsSentLosesItsShare) {
  StepProfile profile = profile_with_work(true);
  profile.buckets = {{40'000'000, 0.09}};
  // From 90 ms on computing goes at half its speed: its last 10 ms take 20.
  const Forecast result = forecast_step(profile, 2, kLink);
  EXPECT_NEAR(result.step_s, 0.13, 1e-6);
  EXPECT_NEAR(result.exposed_s, 0.02, 1e-6);
}

TEST(Forecast, SendingOnCoresOfItsOwnTakesNothing) {
  EXPECT_NEAR(forecast_step(profile_with_work(false), 2, kLink).step_s, 0.14, 1e-6);
}

TEST(Forecast, NoLinkIsFasterThanTheProcessorThatSends) {
  ForecastLink endless = kLink;
  endless.bits_per_second = 1e18;
  // 20 ms each, in which nothing is computed: 50 + 20 + 50 + 20.
  const Forecast shared = forecast_step(profile_with_work(true), 2, endless);
  EXPECT_NEAR(shared.step_s, 0.14, 1e-6);
  EXPECT_EQ(shared.limit, "processor");
  EXPECT_NEAR(forecast_step(profile_with_work(false), 2, endless).step_s, 0.12, 1e-6);
}

TEST(Forecast, MorePeersAreMoreMessages) {
  StepProfile profile = steady_profile();
  profile.buckets = {{40'000'000, 0.1}};
  profile.sending_work = {.seconds_per_message = 1e-3, .shares_cores = true};
  ForecastLink endless = kLink;
  endless.bits_per_second = 1e18;
  // Four parts of 2.5 million elements. Two nodes: each in five chunks, of which a message goes out and one
  // comes back.
  EXPECT_NEAR(forecast_step(profile, 2, endless).step_s, 0.1 + 4 * 5 * 2 * 1e-3, 1e-6);
  // 100 nodes: each in one chunk.
  EXPECT_NEAR(forecast_step(profile, 100, endless).step_s, 0.1 + 4 * 2 * 99 * 1e-3, 1e-6);
}

TEST(Forecast, RefusesWhatIsNoLink) {
  EXPECT_THROW(forecast_step(steady_profile(), 0, kLink), InvalidArgument);
  EXPECT_THROW(forecast_step(steady_profile(), 2, {.bits_per_second = 0}), InvalidArgument);
  EXPECT_THROW(forecast_step(steady_profile(), 2, {.bits_per_second = 1e-300}), InvalidArgument);
  EXPECT_THROW(forecast_step(steady_profile(), 2, {.bits_per_second = 1e300}), InvalidArgument);
  EXPECT_THROW(forecast_step(steady_profile(), 2, {.bits_per_second = 1, .efficiency = 0}), InvalidArgument);
  EXPECT_THROW(forecast_step(steady_profile(), 2, {.bits_per_second = 1, .latency_s = -1}), InvalidArgument);
}

class Profiles : public testing::Test {
 protected:
  StepProfile read(const std::string& content) const {
    return read_step_profile(directory_.write("profile.json", content));
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(Profiles, AreReadInTheOrderOfTime) {
  const StepProfile profile =
      read(R"({"source": "measured", "ranks": 2, "samples_per_step": 32, "compute_s": 0.5,
      "jitter": [0.9, 1, 1.2], "buckets": [{"bytes": 8, "ready_s": 0.4}, {"bytes": 4, "ready_s": 0.2}]})");
  EXPECT_EQ(profile.node_samples, 16);
  EXPECT_EQ(profile.buckets[0].bytes, 4);
  EXPECT_THAT(profile.jitter, testing::ElementsAre(0.9, 1, 1.2));
  EXPECT_FALSE(profile.sending_work);
}

TEST_F(Profiles, SayWhatSendingTakes) {
  const StepProfile profile =
      read(R"({"source": "x", "ranks": 1, "samples_per_step": 1, "compute_s": 1, "jitter": [1],
      "buckets": [], "sending_work": {"seconds_per_byte": 2e-9, "seconds_per_message": 3e-6, "shares_cores": true}})");
  ASSERT_TRUE(profile.sending_work);
  EXPECT_EQ(profile.sending_work->seconds_per_byte, 2e-9);
  EXPECT_EQ(profile.sending_work->seconds_per_message, 3e-6);
  EXPECT_TRUE(profile.sending_work->shares_cores);
}

TEST_F(Profiles, ThatAreNoneAreRefused) {
  const std::string good = R"("source": "x", "ranks": 1, "samples_per_step": 1, "buckets": [])";
  for (const std::string& content :
       {std::string("{"), std::string("[]"), "{" + good + "}",
        std::string(R"({"source": "x", "ranks": 4294967297, "samples_per_step": 1e30, "buckets": [],
            "compute_s": 1, "jitter": [1]})"),
        std::string(R"({"source": "x", "ranks": 1, "samples_per_step": 1e30, "buckets": [],
            "compute_s": 1, "jitter": [1]})"),
        std::string(R"({"source": "x", "ranks": 1, "samples_per_step": 1, "compute_s": 1, "jitter": [1],
            "buckets": [{"bytes": 1e300, "ready_s": 0}]})"),
        "{" + good + R"(, "compute_s": 0, "jitter": [1]})", "{" + good + R"(, "compute_s": 1, "jitter": []})",
        "{" + good + R"(, "compute_s": 1, "jitter": [2, 1]})",
        "{" + good + R"(, "compute_s": "x", "jitter": [1]})",
        "{" + good + R"(, "compute_s": 1, "jitter": [1], "sending_work": 1})",
        "{" + good + R"(, "compute_s": 1, "jitter": [1], "sending_work": {"seconds_per_byte": 1}})",
        "{" + good + R"(, "compute_s": 1, "jitter": [1], "sending_work":
            {"seconds_per_byte": -1, "seconds_per_message": 0, "shares_cores": true}})",
        // Finite, but what is made of them would not be.
        "{" + good + R"(, "compute_s": 1e308, "jitter": [1]})",
        "{" + good + R"(, "compute_s": 1e-308, "jitter": [1]})",
        "{" + good + R"(, "compute_s": 1, "jitter": [1, 1e308]})",
        "{" + good + R"(, "compute_s": 1, "jitter": [1e-308]})",
        "{" + good + R"(, "compute_s": 1, "jitter": [1], "latency_s": 1e308})",
        "{" + good + R"(, "compute_s": 1, "jitter": [1], "sending_work":
            {"seconds_per_byte": 1e308, "seconds_per_message": 0, "shares_cores": true}})",
        std::string(R"({"source": "x", "ranks": 1, "samples_per_step": 1, "compute_s": 1, "jitter": [1],
            "buckets": [{"bytes": 8, "ready_s": 1e308}]})")})
    EXPECT_THROW(read(content), DataError) << content;
  EXPECT_THROW(read_step_profile("/nowhere"), Error);
}

TEST(Forecast, GivesTheFiguresThatOthersHavePublished) {
  const std::string folder = MOX_SOURCE_DIR "/bench/forecast_profiles/";
  const auto efficiency = [&](const std::string& name, int nodes, const ForecastLink& link) {
    return forecast_step(read_step_profile(folder + name), nodes, link).speed_up / nodes;
  };
  // The assumptions are in the files; docs/distributed.md says what the comparison is worth.
  const ForecastLink horovod{.bits_per_second = 25e9, .efficiency = 0.73, .latency_s = 20e-6};
  EXPECT_NEAR(efficiency("resnet101_4xP100.json", 128, horovod), 0.90, 0.02);
  EXPECT_NEAR(efficiency("vgg16_4xP100.json", 128, horovod), 0.68, 0.02);
  const ForecastLink moxing{.bits_per_second = 100e9, .efficiency = 0.73, .latency_s = 20e-6};
  EXPECT_NEAR(efficiency("resnet50_8xV100.json", 16, moxing), 0.91, 0.02);
}

}  // namespace
}  // namespace mox
