// Convolutions that would round more than is wanted sum directly (winograd/rounding.h).
#pragma once

#include "runtime/graph/rewrite.h"

namespace mox {

// Marks, with kSumsDirectly, convolutions and gradients of them for which Winograd's kernels would be taken
// and may err by more than `largest_error`. Comes after the choice of precision, and before the rules that
// take Winograd's kernels for more.
NamedRule convolution_error_rule(double largest_error);

}  // namespace mox
