// The loop of an update rule: over the elements of one variable, its gradient and its slots.
//
// Files that include this are compiled without contraction of products and sums (see moxing/CMakeLists.txt),
// so an element's bits do not depend on whether it falls into the vector body of a loop or into its tail, and
// so not on how a team cuts the work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "moxing/optimizers/optimizer.h"
#include "runtime/base/error.h"

namespace mox::internal {

// Fewer elements than this are not worth waking a thread for.
inline constexpr int64_t kUpdateGrain = 16384;

// The gradient as a rule sees it: scaled, clipped, and with the coupled weight decay added.
struct EffectiveGradient {
  explicit EffectiveGradient(const ParameterUpdate& update, double coupled_weight_decay)
      : scale(update.gradient_scale), clip(update.clip_value), decay(coupled_weight_decay) {}

  float operator()(float gradient, float value) const {
    // std::max and std::min return their first argument if the other does not compare: NaN stays NaN.
    return std::min(std::max(gradient * scale, -clip), clip) + decay * value;
  }

  float scale, clip, decay;
};

template <typename Rule, typename... Slot>
void update_range(const Rule& rule, int64_t count, float* __restrict value, const float* __restrict gradient,
                  Slot* __restrict... slots) {
  for (int64_t i = 0; i < count; ++i) rule(value[i], gradient[i], slots[i]...);
}

// Calls rule(float& value, float gradient, float& slot...) for every element, with `kSlots` slots.
template <size_t kSlots, typename Rule>
void update_elements(const ParameterUpdate& update, const Team& team, const Rule& rule) {
  MOX_ASSERT(update.gradient.size() == update.value.size(), "a gradient has its variable's shape");
  MOX_ASSERT(update.slots.size() == kSlots, "an update carries the slots that the optimizer asked for");
  for (const std::span<float>& slot : update.slots)
    MOX_ASSERT(slot.size() == update.value.size(), "a slot has its variable's shape");
  team.parallel_for(update.value.size(), kUpdateGrain, [&](int64_t begin, int64_t end) {
    const auto run = [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
      update_range(rule, end - begin, update.value.data() + begin, update.gradient.data() + begin,
                   update.slots[kIndex].data() + begin...);
    };
    run(std::make_index_sequence<kSlots>());
  });
}

}  // namespace mox::internal
