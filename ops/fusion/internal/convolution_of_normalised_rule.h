// Convolutions of what a batch normalisation and relu make, both as one node (winograd/of_normalised.h).
#pragma once

#include "ops/convolution/convolution.h"
#include "ops/fusion/default_rules.h"
#include "runtime/graph/rewrite.h"

namespace mox {

// Input float32 [groups, 3, channels], moments as conv2d_moments gives them; outputs mean and variance of all
// pixels.
const Op& statistics_of_moments_op();

// OfNormalisedInputs; outputs y, its moments by groups of pixels as
// conv2d_moments gives them, and the normalised image if "has_image". Attributes: those of the convolution,
// "epsilon", "has_image" and kGroupsOfPixels. Made by convolution_moments_rule.
const Op& conv2d_of_normalised_op();

// The convolution that becomes one node with this batch_norm_activation, or null. It is the first that reads
// the result, it is normalised itself, there is a kernel for the two, and the activation is relu.
const Node* convolution_of_normalised(const Node& normalisation, const RewriteView& view);

// Leaves out the normalised image of a conv2d_of_normalised where nothing wants it. Comes last.
NamedRule unneeded_normalised_image_rule();

}  // namespace mox
