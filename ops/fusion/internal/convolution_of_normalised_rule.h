// Convolutions of what a batch normalisation and relu make, both as one node (winograd/of_normalised.h).
#pragma once

#include "runtime/graph/rewrite.h"

namespace mox {

// The convolution that becomes one node with this batch_norm_activation, or null. It is the first that reads
// the result, it is normalised itself, there is a kernel for the two, and the activation is relu.
const Node* convolution_of_normalised(const Node& normalisation, const RewriteView& view);

// Leaves out the normalised image of a conv2d_of_normalised where nothing wants it. Comes last.
NamedRule unneeded_normalised_image_rule();

}  // namespace mox
