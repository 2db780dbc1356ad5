// Learning-rate schedules: the value of a hyper-parameter as a function of the training progress.
//
// A Schedule is an immutable value without state, so a resumed run continues exactly. It is asked with the
// global step, the number of steps done (0 before the first one), those that loss scaling left out among
// them, since epochs follow the data; and with the number of steps in an epoch, which is a fraction where
// batches run across the ends of passes.
//
//   Schedule rate = 0.1;                                              // constant
//   Schedule rate = "5:0.1->0.4,10:0.4=>0.8,15:0.8,20:0.08";          // MoXing's form, in epochs
//   Schedule rate = warmup(epochs(5), cosine_decay(0.4, epochs(90))); // functions, in steps or epochs
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mox {

// A length of training, counted in steps or in epochs. A plain number counts steps.
struct TrainingLength {
  enum class Unit { kSteps, kEpochs };

  TrainingLength(int64_t steps) : value(static_cast<double>(steps)) {}  // NOLINT: implicit on purpose
  TrainingLength(double value, Unit unit) : value(value), unit(unit) {}

  // `step` in this length's unit; `value` itself for the step that ends it, whatever the epochs have been
  // rounded to. Throws FailedPrecondition for epochs if `steps_per_epoch` is not positive (unknown).
  double elapsed(int64_t step, double steps_per_epoch) const;

  double value;
  Unit unit = Unit::kSteps;
};
TrainingLength steps(double count);
TrainingLength epochs(double count);
std::string to_string(const TrainingLength& length);  // "300 steps", "2.5 epochs"

// What a schedule computes. Derive from it to write a schedule of your own; an object is shared
// and never changes.
class ScheduleFunction {
 public:
  virtual ~ScheduleFunction() = default;
  // `step` >= 0 steps were done; `steps_per_epoch` is 0 if it is unknown.
  virtual double value(int64_t step, double steps_per_epoch) const = 0;
  virtual bool needs_steps_per_epoch() const { return false; }
  virtual std::string description() const = 0;
  virtual std::optional<std::string> text() const { return std::nullopt; }  // see Schedule::text
};

class Schedule {
 public:
  // Constant. Throws InvalidArgument if it is not finite.
  template <typename Number>
  // NOLINTNEXTLINE(google-explicit-constructor): a number is a schedule
  requires std::is_arithmetic_v<Number> Schedule(Number value)
      : Schedule(make_constant(static_cast<double>(value))) {}

  // From text: a number ("0.1"), or segments in MoXing's form, separated by commas:
  //   END:VALUE        the value is constant until END
  //   END:FROM->TO     goes from FROM to TO on a straight line, reaching TO at END
  //   END:FROM=>TO     goes from FROM to TO exponentially (equal factors in equal times);
  //                    both values positive
  // END counts epochs, or steps where the first one says so ("500 steps:0->0.1,2000:0.1"); "epochs" may be
  // written, too, and all are of one unit.
  // Each segment begins where the one before it ends, the first at 0; ENDs are positive and increase, and may
  // be fractions. A step that lies on a border takes the segment that begins there. After the last
  // segment its last value (TO, or VALUE) holds for ever. Throws InvalidArgument that names the column, what
  // was expected and what was found.
  Schedule(std::string_view text);    // NOLINT: implicit on purpose
  Schedule(const char* text);         // NOLINT: implicit on purpose
  Schedule(const std::string& text);  // NOLINT: implicit on purpose

  // From a function of one's own; must not be null (InvalidArgument).
  explicit Schedule(std::shared_ptr<const ScheduleFunction> function);

  // The value for the step that comes after `step` others. Throws FailedPrecondition if the schedule is
  // written in epochs and `steps_per_epoch` is not positive; InvalidArgument if `step` is negative.
  double value(int64_t step, double steps_per_epoch = 0) const;

  // Whether `value` needs to know the number of steps in an epoch.
  bool needs_steps_per_epoch() const { return function_->needs_steps_per_epoch(); }

  // One line for a person to read, for example "0.1 for 30 epochs, then 0.01".
  std::string description() const { return function_->description(); }

  // The text that makes an equal schedule, if there is one: of a constant, and of a schedule made from text.
  std::optional<std::string> text() const { return function_->text(); }

 private:
  static Schedule make_constant(double value);

  std::shared_ptr<const ScheduleFunction> function_;
};

// values[i] from boundaries[i - 1] (0 for the first) to just before boundaries[i]; the last value holds for
// ever. Throws InvalidArgument unless there is one more value than boundaries and the boundaries increase
// (compared within one unit; all of them in steps or all in epochs).
Schedule piecewise_constant(std::vector<TrainingLength> boundaries, std::vector<double> values);

// (initial - end) * (1 - step / length)^power + end; `end` holds after `length`. power 1 is a straight line.
Schedule polynomial_decay(double initial, TrainingLength length, double end = 0, double power = 1);

struct ExponentialDecayOptions {
  bool staircase = false;  // decay at whole multiples of the length only
};
// initial * factor^(step / length), for ever. `factor` is positive.
Schedule exponential_decay(double initial, TrainingLength length, double factor,
                           const ExponentialDecayOptions& options = {});

struct CosineDecayOptions {
  double end = 0;                // the value that a period ends with
  bool restarts = false;         // begin anew after each period; otherwise `end` holds after the first one
  double period_multiplier = 1;  // each period is this much longer than the one before, >= 1; needs restarts
  // each period begins at this much of the previous start, in (0, 1]; needs restarts
  double initial_multiplier = 1;
};
// end + (initial - end) * (1 + cos(pi * t)) / 2, t the elapsed part of the period, whose first length is
// `length`. Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts" (ICLR 2017).
Schedule cosine_decay(double initial, TrainingLength length, const CosineDecayOptions& options = {});

// A straight line from `start` to the first value of `then` over `length`; then `then`, counted from the end
// of the warm-up. At step 0 the value is `start`. Goyal et al., "Accurate, Large Minibatch SGD" (2017).
Schedule warmup(TrainingLength length, Schedule then, double start = 0);

}  // namespace mox
