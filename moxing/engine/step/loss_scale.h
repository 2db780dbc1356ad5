// Loss scaling: the loss is multiplied by a number before its gradients are taken, and the gradients are
// divided by it before they are used, so that those that are too small for a short format do not vanish on
// their way. A step whose gradients are not finite is left out, as if it had not been: no variable, slot or
// moving average changes. A fixed scale may be told not to look (drop_overflow_update: false): then every
// update is applied, and what is not finite shows in the loss of the next step.
//
// A dynamic scale begins at 2^15, halves (not below 1) after a step that is left out, and doubles (not beyond
// 2^24) after 2000 steps in a row that are not. Micikevicius et al., "Mixed Precision Training" (ICLR 2018),
// section 3.2.
#pragma once

#include <cstdint>
#include <span>

#include "moxing/config/options.h"
#include "runtime/base/team.h"
#include "runtime/tensor/array.h"

namespace mox::internal {

// What a checkpoint keeps of it.
struct LossScaleState {
  double scale = 0;            // of a dynamic one; 0: there is none yet
  int64_t steps_in_a_row = 0;  // that were not left out, since the scale last changed
  int64_t skipped_steps = 0;   // of the whole run
  int64_t skipped_in_a_row = 0;
  bool operator==(const LossScaleState&) const = default;
};

class LossScale {
 public:
  static constexpr double kFirst = 1 << 15, kLargest = 1 << 24;
  static constexpr int64_t kStepsToDouble = 2000;
  // More steps than it takes to come from the largest scale to 1.
  static constexpr int64_t kMostSkippedInARow = 30;

  LossScale() : LossScale(1.0, {}) {}
  // `setting`: the value of the option loss_scale, a number in [1, kLargest] (1: none) or "dynamic", which
  // needs `drops_overflow`.
  LossScale(const NumberOrString& setting, const LossScaleState& state, bool drops_overflow = true);

  // False for a scale of 1: nothing is multiplied, checked or left out.
  bool is_on() const { return is_dynamic_ || scale_ != 1; }
  // Whether gradients are looked at, to leave out a step.
  bool may_leave_out() const { return is_on() && drops_overflow_; }
  double scale() const { return scale_; }
  // The same as a scalar float32, which follows the scale; the memory stays where it is.
  const Array& variable() const { return variable_; }
  LossScaleState state() const;
  int64_t skipped_steps() const { return state_.skipped_steps; }

  // Of a step's gradients: whether they are to be applied; the scale of the next step follows from it. Throws
  // NumericError after kMostSkippedInARow steps in a row that are not.
  bool accepts(bool gradients_are_finite);

 private:
  void set_scale(double scale);

  bool is_dynamic_, drops_overflow_;
  double scale_ = 1;
  Array variable_ = Array::scalar(1.0f);
  LossScaleState state_;
};

// Whether no value is infinite or NaN.
bool are_finite(std::span<const float> values, const Team& team);

}  // namespace mox::internal
