// The gradient of a convolution's image that goes on through the relu and into the sums of the batch
// normalisation which made the image.
#pragma once

#include "runtime/graph/op.h"

namespace mox {

// ReluGradientInputs: those of conv2d_input_gradient, and of the batch_norm_activation_gradient that takes
// its result, whose other gradient `more` is. Outputs dz, the gradient of what relu was given, and float32
// [groups, 2, channels], the sums of dz and of dz * (x - mean) over groups of pixels. Attributes: those of
// the convolution, "epsilon" and kGroupsOfPixels. Made by convolution_gradient_sums_rule.
const Op& conv2d_input_gradient_sums_op();

}  // namespace mox
