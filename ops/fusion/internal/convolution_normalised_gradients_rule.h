// Both gradients of a convolution between two batch normalisations and those of the normalisation behind it,
// as one node (winograd/normalised_gradients.h): what lies between them stays in the caches.
#pragma once

#include "ops/convolution/convolution.h"
#include "runtime/graph/rewrite.h"

namespace mox {

// NormalisedGradientInputs: the filter; those of batch_norm_gradient_of_sums, whose x is the result y of the
// convolution; and those of conv2d_input_gradient_sums, where the convolution's image is given if it is not
// relu of the normalised x. Outputs dz of x's normalisation and its sums, as conv2d_input_gradient_sums gives
// them, and the gradients of the filter and of the scale and offset of y's. Attributes: those of the
// convolution, "epsilon" of y's normalisation, "epsilon_before" of x's, and kGroupsOfPixels. Made by
// convolution_normalised_gradients_rule.
const Op& conv2d_normalised_gradients_op();

// A batch_norm_gradient_of_sums of whose result a convolution takes both its gradients, the image's by
// conv2d_input_gradient_sums, where there is a kernel for the three. Comes after
// convolution_gradient_sums_rule.
NamedRule convolution_normalised_gradients_rule();

}  // namespace mox
