// Depthwise convolutions of what a batch normalisation with an activation makes, both as one node, and their
// gradients (ops/convolution/depthwise/depthwise.h).
#pragma once

#include "runtime/graph/rewrite.h"

namespace mox {

// Both gradients of a depthwise convolution, and the gradient of the normalisation before it, which alone
// takes the image's. Comes after whatever looks for these.
NamedRule depthwise_gradients_rule();

// A depthwise convolution that alone reads what a normalisation gave, and whose result is normalised with an
// activation, too. Comes after depthwise_gradients_rule, which leaves the normalised image
// without another reader.
NamedRule depthwise_of_normalised_rule();

}  // namespace mox
