#include "runtime/replicas/core_trial.h"

#include <gtest/gtest.h>

namespace mox::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A training whose steps take so long on all cores and on one.
class SimulatedTraining {
 public:
  milliseconds on_all{100}, on_one{50};
  milliseconds pause{0};  // before the next step alone: of a hook
  bool is_contended = true;

  // Steps for so long; the share of the time that was spent on one core.
  double run(milliseconds length) {
    const auto end = now_ + length;
    CoreTrial::Clock::duration spent{};
    while (now_ < end) {
      const bool one = trial_.takes_one_core(now_, is_contended);
      const milliseconds step = one ? on_one : on_all;
      if (one) spent += step;
      now_ += step + pause;
      trial_.note_step(step);
      pause = milliseconds(0);
    }
    return std::chrono::duration<double>(spent) / std::chrono::duration<double>(length);
  }

 private:
  CoreTrial trial_;
  CoreTrial::Clock::time_point now_ = CoreTrial::Clock::time_point(std::chrono::hours(1));
};

TEST(CoreTrial, KeepsToTheFasterAndLooksAgain) {
  SimulatedTraining training;
  training.run(seconds(2));
  EXPECT_GT(training.run(seconds(200)), 0.95);
  training.on_one = milliseconds(200);  // the other work has gone to this core
  training.run(seconds(62));            // until it is tried again at the latest
  EXPECT_LT(training.run(seconds(200)), 0.1);
  training.on_one = milliseconds(50);
  training.run(seconds(62));
  EXPECT_GT(training.run(seconds(200)), 0.9);
}

TEST(CoreTrial, ALittleFasterIsNotWorthwhile) {
  SimulatedTraining training;
  training.on_one = milliseconds(95);
  training.run(seconds(2));
  EXPECT_LT(training.run(seconds(200)), 0.05);
}

TEST(CoreTrial, OneCoreIsForContendedOnesAlone) {
  SimulatedTraining training;
  training.is_contended = false;
  EXPECT_EQ(training.run(seconds(20)), 0);
  training.is_contended = true;
  EXPECT_GT(training.run(seconds(20)), 0.7);
  training.is_contended = false;
  EXPECT_EQ(training.run(seconds(20)), 0);
}

// A pause of either phase, behind steps that were measured, neither decides nor prolongs what was decided.
TEST(CoreTrial, PausesAreNotOfSteps) {
  for (const milliseconds before : {milliseconds(300), milliseconds(1000)})
    for (const bool favours_one : {false, true}) {
      SimulatedTraining training;
      training.on_one = favours_one ? milliseconds(50) : milliseconds(200);
      training.run(before);
      training.pause = seconds(300);
      training.run(seconds(302));
      EXPECT_NEAR(training.run(seconds(100)), favours_one ? 1 : 0, 0.1);
    }
}

// Steps longer than what a trial takes at least: a few of each kind still decide.
TEST(CoreTrial, LongStepsAreMeasuredInAFew) {
  SimulatedTraining training;
  training.on_all = seconds(2);
  training.on_one = seconds(1);
  training.run(seconds(20));
  EXPECT_GT(training.run(seconds(300)), 0.8);
}

}  // namespace
}  // namespace mox::internal
