// Both gradients of a convolution between two batch normalisations and those of the normalisation behind it
// (winograd/normalised_gradients.h).
#pragma once

#include "runtime/graph/op.h"

namespace mox {

// NormalisedGradientInputs: the filter; those of batch_norm_gradient_of_sums, whose x is the result y of the
// convolution; and those of conv2d_input_gradient_sums, where the convolution's image is given if it is not
// relu of the normalised x. Outputs dz of x's normalisation and its sums, as conv2d_input_gradient_sums gives
// them, and the gradients of the filter and of the scale and offset of y's. Attributes: those of the
// convolution, "epsilon" of y's normalisation, "epsilon_before" of x's, and kGroupsOfPixels. Made by
// convolution_normalised_gradients_rule.
const Op& conv2d_normalised_gradients_op();

}  // namespace mox
