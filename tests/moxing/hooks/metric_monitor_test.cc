// What early stopping and the plateau hook have in common: how they follow a metric.
#include "moxing/hooks/internal/metric_monitor.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <limits>

namespace mox::internal {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(MetricMonitorTest, ValuesThatAreNotFiniteAreNoImprovement) {
  for (const bool larger_is_better : {false, true}) {
    MetricMonitor monitor({.metric = "loss", .larger_is_better = larger_is_better, .patience = 2});
    monitor.add({{"loss", kNan}}, 1);
    monitor.add({{"loss", larger_is_better ? kInfinity : -kInfinity}}, 2);
    EXPECT_TRUE(monitor.is_stuck());
    EXPECT_THAT(monitor.describe(), HasSubstr("has not been a finite number for 2 evaluations"));
    monitor.add({{"loss", 1.0}}, 3);  // the first real value counts
    EXPECT_FALSE(monitor.is_stuck());
  }
}

TEST(MetricMonitorTest, ItsStateSurvivesEvaluationsThatWereNotFinite) {
  MetricMonitor monitor({.metric = "loss", .patience = 3});
  monitor.add({{"loss", kNan}}, 4);
  MetricMonitor restored({.metric = "loss", .patience = 3});
  restored.restore_state(monitor.save_state());
  restored.add({{"loss", kInfinity}}, 5);
  EXPECT_FALSE(restored.is_stuck());
  restored.add({{"loss", kNan}}, 6);
  EXPECT_TRUE(restored.is_stuck());
}

TEST(MetricMonitorTest, BeingStuckIsRemembered) {
  MetricMonitor monitor({.metric = "loss", .patience = 2});
  int64_t step = 0;
  for (double loss : {1.0, 2.0, 3.0}) monitor.add({{"loss", loss}}, ++step);
  MetricMonitor restored({.metric = "loss", .patience = 2});
  restored.restore_state(monitor.save_state());
  EXPECT_TRUE(restored.is_stuck());
  EXPECT_EQ(restored.describe(), "loss has not improved on 1 (global step 1) for 2 evaluations");
  MetricMonitor patient({.metric = "loss", .patience = 3});
  patient.restore_state(monitor.save_state());
  EXPECT_FALSE(patient.is_stuck());
  restored.start_over();
  EXPECT_FALSE(restored.is_stuck());
}

TEST(MetricMonitorTest, AFurtherEvaluationAtAStepDoesNotCount) {
  MetricMonitor monitor({.metric = "loss", .patience = 2});
  for (const int64_t step : {1, 2, 2, 2}) monitor.add({{"loss", 1.0}}, step);
  EXPECT_FALSE(monitor.is_stuck());
  MetricMonitor resumed({.metric = "loss", .patience = 2});
  resumed.restore_state(monitor.save_state());
  for (MetricMonitor* one : {&monitor, &resumed}) {
    one->add({{"loss", 1.0}}, 2);
    EXPECT_FALSE(one->is_stuck());
    one->add({{"loss", 1.0}}, 3);
    EXPECT_TRUE(one->is_stuck());
  }
}

}  // namespace
}  // namespace mox::internal
