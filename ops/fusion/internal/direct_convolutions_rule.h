// Convolutions that would round more than is wanted (winograd/rounding.h), or that were measured to be slower
// by Winograd's method (winograd/convolution_class.h), sum directly.
#pragma once

#include "ops/convolution/winograd/convolution_class.h"
#include "runtime/graph/rewrite.h"

namespace mox {

// Marks, with kSumsDirectly, convolutions and gradients of them for which Winograd's kernels would be taken
// and may err by more than `largest_error`, or which are of one of the `classes`. Comes after the choice of
// precision, and before the rules that take Winograd's kernels for more.
NamedRule direct_convolutions_rule(double largest_error, ConvolutionClasses classes);

}  // namespace mox
