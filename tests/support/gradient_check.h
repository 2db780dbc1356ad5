// Checks analytic gradients against finite differences.
#pragma once

#include <string>
#include <vector>

#include "tests/support/evaluate.h"

namespace mox::test {

struct GradientCheckOptions {
  // Of the central difference, in units of the inputs, which should be O(1) and farther than that from any
  // kink. Everything is evaluated in float32: its rounding contributes about 1e-7 / step, the third
  // derivative step^2 / 6.
  double step = 1e-2;
  double relative = 1e-2;  // allowed error is absolute + relative * |numeric derivative|
  double absolute = 2e-3;
  // Inputs that are not differentiated though they are float32 (labels of a loss whose gradient does not
  // reach them).
  std::vector<int> constant_inputs = {};
  uint64_t seed = 0;  // of the run, for random ops
};

// With y = build(inputs) and fixed random weights w, compares d(sum(w y))/d(input) from ops/gradients.h with
// central differences, for every element of every float32 input, compiled with default_rules and again
// without. A gradient that is undefined counts as zero.
void check_gradients(const Build& build, const std::vector<Array>& inputs,
                     const GradientCheckOptions& options = {});

}  // namespace mox::test
