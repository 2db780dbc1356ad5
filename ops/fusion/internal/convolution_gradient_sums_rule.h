// Gradients of a convolution's image that go on through the relu and the batch normalisation which made it:
// where they are in registers, relu's choice is made and the normalisation's sums are taken, which saves its
// gradient a pass over memory.
#pragma once

#include "runtime/graph/rewrite.h"

namespace mox {

// A conv2d_input_gradient that Winograd's kernels compute, in float32 and with a filter that stays in a
// core's cache, and the gradient of a batch normalisation with relu that alone takes its result. Comes after
// the choice of precision and whatever looks for these two. Nothing where `direct_convolutions`
// (RuleOptions) keeps Winograd's kernels out.
NamedRule convolution_gradient_sums_rule(bool direct_convolutions);

}  // namespace mox
