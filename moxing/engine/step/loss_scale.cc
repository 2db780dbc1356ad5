#include "moxing/engine/step/loss_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

bool is_dynamic(const NumberOrString& setting) {
  const auto* text = std::get_if<std::string>(&setting);
  MOX_ASSERT(!text || *text == "dynamic", "the option's values are checked where it is set");
  return text != nullptr;
}

// Without a branch in the loop, which is one pass over memory then.
bool chunk_is_finite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  bool found = false;
  for (float value : values) found |= (std::bit_cast<uint32_t>(value) & kExponent) == kExponent;
  return !found;
}

}  // namespace

LossScale::LossScale(const NumberOrString& setting, const LossScaleState& state, bool drops_overflow)
    : is_dynamic_(is_dynamic(setting)), drops_overflow_(drops_overflow), state_(state) {
  MOX_ASSERT(drops_overflow || !is_dynamic_, "a dynamic scale follows the steps that are left out");
  if (!is_dynamic_) {
    state_ = {.skipped_steps = state.skipped_steps};
    set_scale(std::get<double>(setting));
  } else {
    set_scale(state.scale > 0 ? state.scale : kFirst);
  }
  MOX_ASSERT(scale_ >= 1 && scale_ <= kLargest, "a loss scale is within its range");
}

LossScaleState LossScale::state() const {
  LossScaleState state = state_;
  state.scale = is_dynamic_ ? scale_ : 0;
  return state;
}

void LossScale::set_scale(double scale) {
  scale_ = scale;
  variable_.values<float>()[0] = scale;
}

bool LossScale::accepts(bool gradients_are_finite) {
  if (gradients_are_finite) {
    state_.skipped_in_a_row = 0;
    if (is_dynamic_ && ++state_.steps_in_a_row == kStepsToDouble) {
      set_scale(std::min(2 * scale_, kLargest));
      state_.steps_in_a_row = 0;
    }
    return true;
  }
  ++state_.skipped_steps;
  state_.steps_in_a_row = 0;
  if (++state_.skipped_in_a_row == kMostSkippedInARow)
    throw NumericError(fmt::format(
        "the gradients were not finite in {} steps in a row (loss scale {}): no step was taken in them. {}; "
        "the checkpoints saved before are untouched",
        state_.skipped_in_a_row, scale_,
        is_dynamic_ || scale_ == 1 ? "The loss itself, or the way to it, overflows: try a lower learning rate"
                                   : "Try a smaller loss_scale, or loss_scale: dynamic"));
  if (is_dynamic_) set_scale(std::max(scale_ / 2, 1.0));
  return false;
}

bool are_finite(std::span<const float> values, const Team& team) {
  constexpr int64_t kChunk = 1 << 16;
  std::atomic<bool> finite = true;
  team.parallel_for(values.size(), kChunk, [&](int64_t begin, int64_t end) {
    if (!chunk_is_finite(values.subspan(begin, end - begin))) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

}  // namespace mox::internal
