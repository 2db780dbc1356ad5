// Intervals in steps, seconds and epochs, in what a run does by itself.
#include "moxing/hooks/interval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/hooks/hooks.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CompletedEpochs, APassThatEndsWithinAStepEndsWithIt) {
  EXPECT_EQ(completed_epochs(2, 2.5), 0);
  EXPECT_EQ(completed_epochs(3, 2.5), 1);
  EXPECT_EQ(completed_epochs(5, 2.5), 2);
  EXPECT_EQ(completed_epochs(10, 5), 2);
  EXPECT_EQ(completed_epochs(2.9999999999), 3);
  EXPECT_EQ(completed_epochs(2.99), 2);
  EXPECT_EQ(completed_epochs(30, 3.0000000000000004), 10);  // a quotient that is a little too large
}

TEST(IntervalClockTest, RefusesWhatIsNoInterval) {
  EXPECT_THROW(IntervalClock({.steps = -1}, "x"), InvalidArgument);
  EXPECT_THROW(IntervalClock({.seconds = std::nan("")}, "x"), InvalidArgument);
  EXPECT_THROW(IntervalClock({.epochs = -2}, "x"), InvalidArgument);
}

class Intervals : public SmallRun {
 protected:
  // The steps after which a clock is due in a run of 4 epochs of 2.5 steps.
  std::vector<int64_t> due(const Interval& interval) {
    auto s = spec();
    s.input_fn = [](ModeKeys) { return counting_data(10).repeat(); };
    s.batch_size = 4;
    s.log_dir = "";
    s.max_number_of_steps = 10;
    IntervalClock clock(interval, "test");
    std::vector<int64_t> steps;
    auto hook = std::make_shared<CallbackHook>();
    hook->on_create = [&](Session& session) { clock.start(session); };
    hook->on_after = [&](Session& session, const StepResult&) {
      if (clock.is_due(session)) steps.push_back(session.global_step());
    };
    s.hooks = {hook};
    run_or_throw(s);
    return steps;
  }
};

TEST_F(Intervals, InStepsAndEpochs) {
  EXPECT_THAT(due({.steps = 4}), ElementsAre(4, 8));
  EXPECT_THAT(due({.epochs = 1}), ElementsAre(3, 5, 8, 10));
  EXPECT_THAT(due({.epochs = 2}), ElementsAre(5, 10));
  EXPECT_THAT(due({.steps = 4, .epochs = 2}), ElementsAre(4, 5, 8, 10));
  EXPECT_THAT(due({}), ElementsAre());
}

TEST_F(Intervals, InSeconds) {
  EXPECT_THAT(due({.seconds = 1e-9}), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(due({.seconds = 1e6}), ElementsAre());
}

TEST_F(Intervals, EpochsOfAnUnknownSizeAreRefused) {
  auto s = spec();
  s.input_fn = [](ModeKeys) {
    return Dataset::from_generator({{DType::kFloat32, {1}}}, [] {
      return [n = 0](std::vector<Array>* element) mutable {
        *element = {Array(DType::kFloat32, {1})};
        return n++ < 100;
      };
    });
  };
  s.save_model_epochs = 1;
  EXPECT_THAT(message_of_run<FailedPrecondition>(s),
              AllOf(HasSubstr("the interval of the checkpoints is 1 epochs"), HasSubstr("not known")));
}

TEST_F(Intervals, OfARunComeFromTheConfiguration) {
  const ScopedConfiguration configuration({"--threads=1", "--log_level=error", "--log_every_n_epochs=1",
                                           "--save_summary_epochs=1", "--save_model_epochs=1",
                                           "--save_model_secs=0", "--eval_every_n_epochs=1"});
  auto s = spec();
  s.log_every_n_steps = {};
  s.save_summary_steps = {};
  s.save_model_secs = {};
  s.inter_mode = ModeKeys::EVAL;
  s.max_number_of_steps = 12;  // epochs have five
  ::testing::internal::CaptureStdout();
  run_or_throw(s);
  const std::string output = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(output,
              AllOf(HasSubstr("(global step: 5)"), HasSubstr("(global step: 10)"),
                    Not(HasSubstr("(global step: 2)")), HasSubstr("evaluation at global step 5:"),
                    HasSubstr("evaluation at global step 10:"), HasSubstr("evaluation at global step 12:")));
  std::vector<int64_t> steps;
  for (const auto& entry : list_checkpoints(log_dir_)) steps.push_back(entry.step);
  EXPECT_THAT(steps, ElementsAre(0, 5, 10, 12));
  const std::string records = read_file(log_dir_ + "/metrics.jsonl");
  EXPECT_THAT(records, AllOf(HasSubstr("{\"step\":5,\"samples"), HasSubstr("{\"step\":10,\"samples"),
                             Not(HasSubstr("{\"step\":2,")), Not(HasSubstr("{\"step\":12,\"samples"))));
}

TEST_F(Intervals, StepsThatAreGivenStayBesideEpochs) {
  const ScopedConfiguration configuration(
      {"--threads=1", "--log_level=error", "--log_every_n_epochs=1", "--log_every_n_steps=2"});
  auto s = spec();
  s.log_every_n_steps = {};
  s.max_number_of_steps = 6;
  ::testing::internal::CaptureStdout();
  run_or_throw(s);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("(global step: 4)"), HasSubstr("(global step: 5)"),
                    Not(HasSubstr("(global step: 3)"))));
}

}  // namespace
}  // namespace mox
