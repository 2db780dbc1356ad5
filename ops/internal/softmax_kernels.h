// softmax and log_softmax along any axis, and their derivatives.
#pragma once

#include "ops/internal/axis_view.h"
#include "runtime/base/team.h"

namespace mox::internal {

// y = softmax(x), or its logarithm, along the axis of `view`.
void softmax_forward(const float* x, float* y, const AxisView& view, bool logarithm, const Team& team);

// dx for y = softmax(x): y * (dy - sum(y * dy)); for y = log_softmax(x): dy - exp(y) * sum(dy).
void softmax_backward(const float* y, const float* dy, float* dx, const AxisView& view, bool logarithm,
                      const Team& team);

}  // namespace mox::internal
