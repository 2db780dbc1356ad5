// Convolutions that also give the moments of their results, for the batch normalisation behind them: they sum
// them up while the results are in registers, which saves the normalisation a pass over memory.
#pragma once

#include "runtime/graph/rewrite.h"

namespace mox {

// A conv2d that Winograd's kernels compute, in float32 and with a filter that stays in a core's cache, and
// batch_norm_activation of its result, which then takes its statistics from the moments. Comes after the
// choice of precision and whatever looks for these two. Where a normalisation so treated is convolved again,
// and there is a kernel for both (convolution_of_normalised_rule.h), they become one node. Nothing where
// `direct_convolutions` (RuleOptions) keeps Winograd's kernels out.
NamedRule convolution_moments_rule(bool direct_convolutions);

}  // namespace mox
