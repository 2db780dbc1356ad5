// A convolution of what a batch normalisation and relu make (winograd/of_normalised.h), and the statistics of
// what it gives.
#pragma once

#include "runtime/graph/op.h"

namespace mox {

// Input float32 [groups, 3, channels], moments as conv2d_moments gives them; outputs mean and
// variance of all pixels.
const Op& statistics_of_moments_op();

// OfNormalisedInputs; outputs y, its moments by groups of pixels as conv2d_moments gives them, and the
// normalised image if "has_image". Attributes: those of the convolution, "epsilon", "has_image" and
// kGroupsOfPixels. Made by convolution_moments_rule.
const Op& conv2d_of_normalised_op();

}  // namespace mox
