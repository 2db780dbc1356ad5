// A depthwise convolution of what a batch normalisation with an activation makes, and its gradients
// (ops/convolution/depthwise/depthwise.h).
#pragma once

#include "runtime/graph/op.h"

namespace mox {

// DepthwiseOfNormalisedInputs; outputs y and, of y's channels, mean and variance. Attributes: those of the
// convolution, "epsilon" and the activation.
const Op& depthwise_of_normalised_op();
// DepthwiseGradientsInputs; outputs dz, its sums by samples and the filter's gradient. Attributes: the same.
const Op& depthwise_normalised_gradients_op();

}  // namespace mox
