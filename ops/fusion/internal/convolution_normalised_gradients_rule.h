// Both gradients of a convolution between two batch normalisations and those of the normalisation behind it,
// as one node (winograd/normalised_gradients.h): what lies between them stays in the caches.
#pragma once

#include "runtime/graph/rewrite.h"

namespace mox {

// A batch_norm_gradient_of_sums of whose result a convolution takes both its gradients, the image's by
// conv2d_input_gradient_sums, where there is a kernel for the three. Comes after
// convolution_gradient_sums_rule.
NamedRule convolution_normalised_gradients_rule();

}  // namespace mox
