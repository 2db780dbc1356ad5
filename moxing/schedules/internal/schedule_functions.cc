#include "moxing/schedules/internal/schedule_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "runtime/base/error.h"

namespace mox {
namespace internal {
namespace {

class Constant final : public ScheduleFunction {
 public:
  explicit Constant(double value) : value_(value) {}
  double value(int64_t, double) const override { return value_; }
  std::string description() const override { return fmt::format("{}", value_); }
  std::optional<std::string> text() const override { return description(); }

 private:
  double value_;
};

}  // namespace

std::shared_ptr<const ScheduleFunction> constant_function(double value) {
  return std::make_shared<Constant>(value);
}

}  // namespace internal

namespace {

void require(bool valid, std::string_view schedule, std::string_view what, double given) {
  if (!valid || !std::isfinite(given))
    throw InvalidArgument(fmt::format("{}: {}, got {}", schedule, what, given));
}

void require_length(std::string_view schedule, const TrainingLength& length) {
  require(length.value > 0, schedule, "the length must be a finite number > 0", length.value);
}

// A function whose only time is `length`.
class Decay : public ScheduleFunction {
 public:
  explicit Decay(TrainingLength length) : length_(length) {}
  double value(int64_t step, double steps_per_epoch) const final {
    const double part = length_.elapsed(step, steps_per_epoch) / length_.value;
    return at(internal::snapped(part, std::round(part)));
  }
  bool needs_steps_per_epoch() const final { return length_.unit == TrainingLength::Unit::kEpochs; }

 protected:
  virtual double at(double part) const = 0;  // part: elapsed / length, from 0 upwards

  TrainingLength length_;
};

class Polynomial final : public Decay {
 public:
  Polynomial(double initial, TrainingLength length, double end, double power)
      : Decay(length), initial_(initial), end_(end), power_(power) {}
  std::string description() const override {
    return fmt::format("{} to {} over {} (polynomial, power {})", initial_, end_, to_string(length_), power_);
  }

 protected:
  double at(double part) const override {
    return part >= 1 ? end_ : (initial_ - end_) * std::pow(1 - part, power_) + end_;
  }

 private:
  double initial_, end_, power_;
};

class Exponential final : public Decay {
 public:
  Exponential(double initial, TrainingLength length, double factor, bool staircase)
      : Decay(length), initial_(initial), factor_(factor), staircase_(staircase) {}
  std::string description() const override {
    return fmt::format("{} times {} every {}{}", initial_, factor_, to_string(length_),
                       staircase_ ? " (staircase)" : "");
  }

 protected:
  double at(double part) const override {
    return initial_ * std::pow(factor_, staircase_ ? std::floor(part) : part);
  }

 private:
  double initial_, factor_;
  bool staircase_;
};

class Cosine final : public Decay {
 public:
  Cosine(double initial, TrainingLength length, const CosineDecayOptions& options)
      : Decay(length), initial_(initial), options_(options) {}
  std::string description() const override {
    std::string text = fmt::format("{} to {} over {} (cosine", initial_, options_.end, to_string(length_));
    if (options_.restarts)
      text += fmt::format(", restarts, period x {}, start x {}", options_.period_multiplier,
                          options_.initial_multiplier);
    return text + ")";
  }

 protected:
  double at(double part) const override {
    double start = initial_;
    if (options_.restarts) {
      const auto [period, rest] = period_of(part);
      start *= std::pow(options_.initial_multiplier, period);
      part = rest;
    } else if (part >= 1) {
      return options_.end;
    }
    return options_.end + (start - options_.end) * (1 + std::cos(std::numbers::pi * part)) / 2;
  }

 private:
  // The index of the period that `part` lies in, and the part of it that has elapsed.
  std::pair<double, double> period_of(double part) const {
    const double m = options_.period_multiplier;
    if (m == 1) return {std::floor(part), part - std::floor(part)};
    // Periods 0 .. n-1 take (m^n - 1) / (m - 1) together. The logarithm may miss a border by one either way.
    const auto begin = [&](double n) { return (std::pow(m, n) - 1) / (m - 1); };
    double period = std::max(0.0, std::floor(std::log1p(part * (m - 1)) / std::log(m)));
    for (const double border : {begin(period), begin(period + 1)}) part = internal::snapped(part, border);
    if (begin(period) > part) --period;
    if (begin(period + 1) <= part) ++period;
    return {period, (part - begin(period)) / std::pow(m, period)};
  }

  double initial_;
  CosineDecayOptions options_;
};

class PiecewiseConstant final : public ScheduleFunction {
 public:
  PiecewiseConstant(std::vector<TrainingLength> boundaries, std::vector<double> values)
      : boundaries_(std::move(boundaries)), values_(std::move(values)) {}
  double value(int64_t step, double steps_per_epoch) const override {
    size_t piece = 0;
    while (piece < boundaries_.size() &&
           boundaries_[piece].elapsed(step, steps_per_epoch) >= boundaries_[piece].value)
      ++piece;
    return values_[piece];
  }
  bool needs_steps_per_epoch() const override {
    return !boundaries_.empty() && boundaries_[0].unit == TrainingLength::Unit::kEpochs;
  }
  std::string description() const override {
    std::string text;
    for (size_t i = 0; i < boundaries_.size(); ++i)
      text += fmt::format("{} until {}, ", values_[i], to_string(boundaries_[i]));
    return text + fmt::format("{}{}", boundaries_.empty() ? "" : "then ", values_.back());
  }

 private:
  std::vector<TrainingLength> boundaries_;
  std::vector<double> values_;
};

class Warmup final : public ScheduleFunction {
 public:
  Warmup(TrainingLength length, Schedule then, double start)
      : length_(length), then_(std::move(then)), start_(start) {}
  double value(int64_t step, double steps_per_epoch) const override {
    const double part = length_.elapsed(step, steps_per_epoch) / length_.value;
    if (part < 1) return start_ + (then_.value(0, steps_per_epoch) - start_) * part;
    return then_.value(step - whole_steps(steps_per_epoch), steps_per_epoch);
  }
  bool needs_steps_per_epoch() const override {
    return length_.unit == TrainingLength::Unit::kEpochs || then_.needs_steps_per_epoch();
  }
  std::string description() const override {
    return fmt::format("warm-up from {} over {}, then {}", start_, to_string(length_), then_.description());
  }

 private:
  // The first step that is not part of the warm-up: the least one with elapsed >= length, decided by the same
  // quotient as in `value`.
  int64_t whole_steps(double steps_per_epoch) const {
    const double per_unit = length_.unit == TrainingLength::Unit::kSteps ? 1 : steps_per_epoch;
    int64_t step = std::floor(length_.value * per_unit);
    while (step > 0 && length_.elapsed(step - 1, steps_per_epoch) >= length_.value) --step;
    while (length_.elapsed(step, steps_per_epoch) < length_.value) ++step;
    return step;
  }

  TrainingLength length_;
  Schedule then_;
  double start_;
};

}  // namespace

Schedule piecewise_constant(std::vector<TrainingLength> boundaries, std::vector<double> values) {
  if (values.size() != boundaries.size() + 1)
    throw InvalidArgument(fmt::format("piecewise_constant: {} boundaries need {} values, got {}",
                                      boundaries.size(), boundaries.size() + 1, values.size()));
  for (double value : values) require(true, "piecewise_constant", "values must be finite", value);
  for (size_t i = 0; i < boundaries.size(); ++i) {
    require_length("piecewise_constant", boundaries[i]);
    if (i == 0) continue;
    if (boundaries[i].unit != boundaries[0].unit)
      throw InvalidArgument("piecewise_constant: boundaries must be all in steps or all in epochs");
    if (!(boundaries[i].value > boundaries[i - 1].value))
      throw InvalidArgument(fmt::format("piecewise_constant: boundaries must increase, but {} follows {}",
                                        to_string(boundaries[i]), to_string(boundaries[i - 1])));
  }
  return Schedule(std::make_shared<PiecewiseConstant>(std::move(boundaries), std::move(values)));
}

Schedule polynomial_decay(double initial, TrainingLength length, double end, double power) {
  require_length("polynomial_decay", length);
  require(true, "polynomial_decay", "the initial value must be finite", initial);
  require(true, "polynomial_decay", "the end value must be finite", end);
  require(power > 0, "polynomial_decay", "the power must be a finite number > 0", power);
  return Schedule(std::make_shared<Polynomial>(initial, length, end, power));
}

Schedule exponential_decay(double initial, TrainingLength length, double factor,
                           const ExponentialDecayOptions& options) {
  require_length("exponential_decay", length);
  require(true, "exponential_decay", "the initial value must be finite", initial);
  require(factor > 0, "exponential_decay", "the factor must be a finite number > 0", factor);
  return Schedule(std::make_shared<Exponential>(initial, length, factor, options.staircase));
}

Schedule cosine_decay(double initial, TrainingLength length, const CosineDecayOptions& options) {
  require_length("cosine_decay", length);
  require(true, "cosine_decay", "the initial value must be finite", initial);
  require(true, "cosine_decay", "the end value must be finite", options.end);
  require(options.period_multiplier >= 1, "cosine_decay", "period_multiplier must be a finite number >= 1",
          options.period_multiplier);
  require(options.initial_multiplier > 0 && options.initial_multiplier <= 1, "cosine_decay",
          "initial_multiplier must be in (0, 1]", options.initial_multiplier);
  if (!options.restarts && (options.period_multiplier != 1 || options.initial_multiplier != 1))
    throw InvalidArgument(
        "cosine_decay: period_multiplier and initial_multiplier act on restarts; set restarts = true or "
        "remove them");
  return Schedule(std::make_shared<Cosine>(initial, length, options));
}

Schedule warmup(TrainingLength length, Schedule then, double start) {
  require_length("warmup", length);
  require(true, "warmup", "the start value must be finite", start);
  return Schedule(std::make_shared<Warmup>(length, std::move(then), start));
}

}  // namespace mox
