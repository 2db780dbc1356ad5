#include "moxing/schedules/schedule.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

using ::testing::HasSubstr;

constexpr double kTolerance = 1e-12;

TEST(Schedule, ConvertsFromNumbersAndText) {
  const Schedule from_double = 0.1, from_int = 1, from_zero = 0, from_text = "0.25",
                 from_string = std::string("1e-3");
  EXPECT_EQ(from_double.value(1000000), 0.1);
  EXPECT_EQ(from_int.value(0), 1);
  EXPECT_EQ(from_zero.value(0), 0);
  EXPECT_EQ(from_text.value(0), 0.25);
  EXPECT_EQ(from_string.value(0), 1e-3);
  EXPECT_FALSE(from_text.needs_steps_per_epoch());
  EXPECT_THROW(Schedule(std::nan("")), InvalidArgument);
  EXPECT_THROW(from_double.value(-1), InvalidArgument);
}

TEST(Schedule, MoxingTextAtBordersAndBetween) {
  const Schedule schedule = "5:0.1->0.4,10:0.4=>0.8,15:0.8,20:0.08";
  constexpr int64_t kStepsPerEpoch = 10;
  const auto at = [&](int64_t step) { return schedule.value(step, kStepsPerEpoch); };
  EXPECT_EQ(at(0), 0.1);
  EXPECT_NEAR(at(25), 0.25, kTolerance);  // epoch 2.5: half way
  EXPECT_NEAR(at(49), 0.1 + 0.3 * 49 / 50, kTolerance);
  EXPECT_EQ(at(50), 0.4);                                 // the border belongs to the next segment
  EXPECT_NEAR(at(75), 0.4 * std::sqrt(2.0), kTolerance);  // half way in the exponent
  EXPECT_EQ(at(100), 0.8);
  EXPECT_EQ(at(149), 0.8);
  EXPECT_EQ(at(150), 0.08);
  EXPECT_EQ(at(199), 0.08);
  EXPECT_EQ(at(200), 0.08);  // holds after the last segment
  EXPECT_EQ(at(1000000), 0.08);
  EXPECT_TRUE(schedule.needs_steps_per_epoch());
  EXPECT_THAT(schedule.description(), HasSubstr("5:0.1->0.4,10:0.4=>0.8,15:0.8,20:0.08"));
}

TEST(Schedule, TheLastValueOfARampHoldsAfterIt) {
  const Schedule schedule = "2:0.1->0.3";
  EXPECT_EQ(schedule.value(20, 10), 0.3);
  EXPECT_EQ(schedule.value(500, 10), 0.3);
}

TEST(Schedule, FractionsOfEpochsMeetTheirStepExactly) {
  // 0.29 * 100 is 28.999999999999996 in double precision; the border is step 29 all the same.
  const Schedule schedule = " 0.29 : 1 , 1 : 2 ";
  EXPECT_EQ(schedule.value(28, 100), 1);
  EXPECT_EQ(schedule.value(29, 100), 2);
}

TEST(Schedule, BordersOfEpochsAreMetWhateverRoundsOnTheWay) {
  // 9 samples in batches of 7: 9 / (9.0 / 7) is 6.999999999999999.
  EXPECT_EQ(Schedule("7:1,14:2").value(8, 9.0 / 7), 1);
  EXPECT_EQ(Schedule("7:1,14:2").value(9, 9.0 / 7), 2);
  EXPECT_EQ(Schedule("7:1,14:2->4").value(9, 9.0 / 7), 2);
  EXPECT_EQ(piecewise_constant({epochs(7)}, {1, 2}).value(9, 9.0 / 7), 2);
  EXPECT_EQ(warmup(epochs(7), piecewise_constant({1}, {1, 2})).value(9, 9.0 / 7), 1);
  EXPECT_EQ(warmup(epochs(7), piecewise_constant({1}, {1, 2})).value(10, 9.0 / 7), 2);
  EXPECT_EQ(polynomial_decay(1, epochs(7), 0.5).value(9, 9.0 / 7), 0.5);
  // 3.3 / 1.1 and 0.3 / 0.1 are less than 3.
  EXPECT_EQ(exponential_decay(1, epochs(1.1), 0.5, {.staircase = true}).value(32, 10), 0.25);
  EXPECT_EQ(exponential_decay(1, epochs(1.1), 0.5, {.staircase = true}).value(33, 10), 0.125);
  EXPECT_EQ(exponential_decay(1, epochs(0.1), 0.5, {.staircase = true}).value(3, 10), 0.125);
  EXPECT_EQ(cosine_decay(1, epochs(1.1), {.restarts = true}).value(33, 10), 1);
  EXPECT_LT(cosine_decay(1, epochs(1.1), {.restarts = true}).value(32, 10), 0.03);
  // Periods of 1.1 and 1.65 epochs end after 27.5 steps of 10, or 55 of 20.
  const Schedule longer = cosine_decay(1, epochs(1.1), {.restarts = true, .period_multiplier = 1.5});
  EXPECT_EQ(longer.value(55, 20), 1);
  EXPECT_LT(longer.value(54, 20), 0.01);
  // The second of these periods is longer than any number.
  EXPECT_EQ(cosine_decay(1, epochs(1), {.restarts = true, .period_multiplier = 1e308}).value(10, 10), 1);
}

TEST(Schedule, EpochsNeedToKnowTheirSteps) {
  const Schedule schedule = "5:0.1,10:0.01";
  try {
    schedule.value(0, 0);
    FAIL();
  } catch (const FailedPrecondition& error) {
    EXPECT_THAT(error.what(), HasSubstr("number of steps in an epoch is unknown"));
  }
  EXPECT_THROW(cosine_decay(1, epochs(2)).value(0), FailedPrecondition);
  EXPECT_THROW(warmup(10, "5:0.1").value(0), FailedPrecondition);
  EXPECT_TRUE(warmup(10, "5:0.1").needs_steps_per_epoch());
  EXPECT_FALSE(warmup(10, 0.1).needs_steps_per_epoch());
}

TEST(Schedule, TextMayCountSteps) {
  const Schedule schedule = "100 steps:0->1,200steps:1=>4,300:0.5";
  EXPECT_FALSE(schedule.needs_steps_per_epoch());
  EXPECT_EQ(schedule.value(0), 0);
  EXPECT_NEAR(schedule.value(25), 0.25, kTolerance);
  EXPECT_NEAR(schedule.value(150), 2, kTolerance);
  EXPECT_EQ(schedule.value(200), 0.5);
  EXPECT_EQ(schedule.value(10000), 0.5);
  EXPECT_EQ(schedule.text(), "100 steps:0->1,200steps:1=>4,300:0.5");
  EXPECT_THAT(schedule.description(), HasSubstr("(steps, then 0.5)"));
  const Schedule epochs = "5 epochs:1,10:2";
  EXPECT_TRUE(epochs.needs_steps_per_epoch());
  EXPECT_EQ(epochs.value(50, 10), 2);
  EXPECT_THAT(message_of<InvalidArgument>([] { Schedule mixed = "5:1,100 steps:2"; }),
              HasSubstr("column 9: expected epochs, as in the first segment"));
  EXPECT_THAT(message_of<InvalidArgument>([] { Schedule mixed = "100 steps:1,5 epochs:2"; }),
              HasSubstr("expected steps, as in the first segment"));
}

TEST(Schedule, TextErrorsNameTheColumn) {
  const auto expect = [](const char* text, const char* column, const char* expected) {
    const std::string error = message_of<InvalidArgument>([&] { Schedule schedule = text; });
    EXPECT_THAT(error, HasSubstr(column)) << text;
    EXPECT_THAT(error, HasSubstr(expected)) << text;
  };
  expect("", "column 1:", "found the end of the text");
  expect("fast", "column 1:", "expected a number");
  expect("5:", "column 3:", "expected a value");
  expect("5:0.1-0.4", "column 6:", "expected ',' and the next segment");
  expect("5:0.1->", "column 8:", "the value that the segment ends with");
  expect("5:0.1,", "column 7:", "the end of the segment");
  expect("5:0.1,10", "column 9:", "expected ':'");
  expect("5:0.1,5:0.2", "column 7:", "an end after 5");
  expect("5:0.1, 3:0.2", "column 8:", "an end after 5");
  expect("0:0.1", "column 1:", "an end > 0");
  expect("-1:0.1", "column 1:", "an end > 0");
  expect("5:0=>0.1", "column 3:", "a value > 0");
  expect("5:0.1=>-1", "column 8:", "a value > 0");
  expect("5:nan", "column 3:", "expected a value");
  expect("5:inf", "column 3:", "expected a value");
  expect("1e999:1", "column 1:", "expected a number");
  expect("5:0.1;10:0.2", "column 6:", "expected ','");
  EXPECT_THROW(Schedule(static_cast<const char*>(nullptr)), InvalidArgument);
}

TEST(PiecewiseConstant, ChangesAtItsBoundaries) {
  const Schedule schedule = piecewise_constant({100, 200}, {0.1, 0.01, 0.001});
  EXPECT_EQ(schedule.value(0), 0.1);
  EXPECT_EQ(schedule.value(99), 0.1);
  EXPECT_EQ(schedule.value(100), 0.01);
  EXPECT_EQ(schedule.value(199), 0.01);
  EXPECT_EQ(schedule.value(200), 0.001);
  EXPECT_EQ(piecewise_constant({epochs(1.5)}, {1, 2}).value(15, 10), 2);
  EXPECT_EQ(piecewise_constant({epochs(1.5)}, {1, 2}).value(14, 10), 1);
  EXPECT_EQ(piecewise_constant({}, {3}).value(7), 3);
  EXPECT_EQ(schedule.description(), "0.1 until 100 steps, 0.01 until 200 steps, then 0.001");
  EXPECT_THROW(piecewise_constant({1}, {1}), InvalidArgument);
  EXPECT_THROW(piecewise_constant({2, 2}, {1, 2, 3}), InvalidArgument);
  EXPECT_THROW(piecewise_constant({2, epochs(3)}, {1, 2, 3}), InvalidArgument);
  EXPECT_THROW(piecewise_constant({0}, {1, 2}), InvalidArgument);
}

TEST(PolynomialDecay, GoesToItsEndAndStays) {
  const Schedule line = polynomial_decay(1, 10, 0.5);
  EXPECT_EQ(line.value(0), 1);
  EXPECT_NEAR(line.value(4), 0.8, kTolerance);
  EXPECT_EQ(line.value(10), 0.5);
  EXPECT_EQ(line.value(99), 0.5);
  EXPECT_NEAR(polynomial_decay(1, 10, 0, 2).value(5), 0.25, kTolerance);
  EXPECT_NEAR(polynomial_decay(1, epochs(2), 0, 2).value(10, 10), 0.25, kTolerance);
  EXPECT_THROW(polynomial_decay(1, 0), InvalidArgument);
  EXPECT_THROW(polynomial_decay(1, 10, 0, 0), InvalidArgument);
}

TEST(ExponentialDecay, SmoothAndInStairs) {
  const Schedule smooth = exponential_decay(0.8, 10, 0.25);
  EXPECT_EQ(smooth.value(0), 0.8);
  EXPECT_NEAR(smooth.value(5), 0.4, kTolerance);
  EXPECT_NEAR(smooth.value(20), 0.05, kTolerance);
  const Schedule stairs = exponential_decay(0.8, 10, 0.25, {.staircase = true});
  EXPECT_EQ(stairs.value(9), 0.8);
  EXPECT_NEAR(stairs.value(10), 0.2, kTolerance);
  EXPECT_NEAR(stairs.value(19), 0.2, kTolerance);
  EXPECT_THROW(exponential_decay(0.8, 10, 0), InvalidArgument);
}

TEST(CosineDecay, WithoutRestarts) {
  const Schedule schedule = cosine_decay(1, 100, {.end = 0.2});
  EXPECT_EQ(schedule.value(0), 1);
  EXPECT_NEAR(schedule.value(50), 0.6, kTolerance);
  EXPECT_NEAR(schedule.value(25), 0.2 + 0.4 * (1 + std::sqrt(0.5)), kTolerance);
  EXPECT_EQ(schedule.value(100), 0.2);
  EXPECT_EQ(schedule.value(150), 0.2);
  EXPECT_THROW(cosine_decay(1, 100, {.period_multiplier = 2}), InvalidArgument);
}

TEST(CosineDecay, RestartsAtEveryPeriod) {
  const Schedule equal = cosine_decay(1, 10, {.restarts = true});
  EXPECT_EQ(equal.value(10), 1);
  EXPECT_NEAR(equal.value(15), 0.5, kTolerance);
  // Periods of 10, 20, 40, ... steps begin at 0, 10, 30, 70, ..., each from half as high.
  const Schedule longer =
      cosine_decay(1, 10, {.restarts = true, .period_multiplier = 2, .initial_multiplier = 0.5});
  const std::vector<int64_t> begins = {0, 10, 30, 70, 150, 310, 630};
  for (size_t period = 0; period < begins.size(); ++period)
    EXPECT_NEAR(longer.value(begins[period]), std::pow(0.5, static_cast<double>(period)), kTolerance)
        << period;
  EXPECT_NEAR(longer.value(20), 0.25, kTolerance);
  EXPECT_NEAR(longer.value(50), 0.125, kTolerance);
  EXPECT_LT(longer.value(9), 0.03);
  EXPECT_LT(longer.value(29), 0.01);
}

TEST(CosineDecay, PeriodsBeginExactlyWhereALogarithmWouldMissThem) {
  const Schedule schedule = cosine_decay(1, 10, {.restarts = true, .period_multiplier = 3});
  for (int64_t begin : {0, 10, 40, 130, 400, 1210, 3640, 10930, 295240, 645700810})
    EXPECT_NEAR(schedule.value(begin), 1, kTolerance) << begin;
  for (int64_t before : {9, 39, 129, 399, 1209, 3639}) EXPECT_LT(schedule.value(before), 0.03) << before;
}

TEST(Warmup, RisesInFrontOfAnySchedule) {
  const Schedule schedule = warmup(10, polynomial_decay(1, 10), 0.1);
  EXPECT_EQ(schedule.value(0), 0.1);
  EXPECT_NEAR(schedule.value(5), 0.55, kTolerance);
  EXPECT_EQ(schedule.value(10), 1);  // `then` begins here, counted anew
  EXPECT_NEAR(schedule.value(15), 0.5, kTolerance);
  EXPECT_EQ(schedule.value(20), 0);
  // A length in epochs that is no whole number of steps: 1.25 epochs of 3 steps end after 3.75, so at step 4.
  const Schedule by_epoch = warmup(epochs(1.25), piecewise_constant({1}, {8, 9}));
  EXPECT_NEAR(by_epoch.value(3, 3), 6.4, kTolerance);
  EXPECT_EQ(by_epoch.value(4, 3), 8);
  EXPECT_EQ(by_epoch.value(5, 3), 9);
  EXPECT_EQ(schedule.description(),
            "warm-up from 0.1 over 10 steps, then 1 to 0 over 10 steps (polynomial, power 1)");
  EXPECT_THROW(warmup(0, 1), InvalidArgument);
  EXPECT_THROW(warmup(10, 1, std::nan("")), InvalidArgument);
}

TEST(Warmup, MeetsABorderThatRoundingWouldMiss) {
  // 1.1 * 10 is 11.000000000000002 in double precision; the warm-up has 11 steps all the same.
  EXPECT_EQ(warmup(epochs(1.1), piecewise_constant({1}, {8, 9})).value(11, 10), 8);
  EXPECT_EQ(warmup(epochs(1.1), piecewise_constant({1}, {8, 9})).value(12, 10), 9);
}

class Sawtooth : public ScheduleFunction {
 public:
  double value(int64_t step, double) const override { return static_cast<double>(step % 3); }
  std::string description() const override { return "sawtooth"; }
};

TEST(Schedule, AUserCanWriteOne) {
  const Schedule schedule(std::make_shared<Sawtooth>());
  EXPECT_EQ(schedule.value(5), 2);
  EXPECT_EQ(schedule.description(), "sawtooth");
  EXPECT_THROW(Schedule(std::shared_ptr<const ScheduleFunction>()), InvalidArgument);
}

}  // namespace
}  // namespace mox
