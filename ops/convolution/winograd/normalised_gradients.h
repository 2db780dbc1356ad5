// Gradients of a convolution between two batch normalisations, a few images at a time, so that what one
// computation makes the next finds in the core's cache: the gradient of the normalisation behind the
// convolution never goes through memory, and the image in front of it is read once for both of the
// convolution's gradients, or not at all.
//
// Of dz, the gradient of what the normalisation behind gave, and sums over dz, per
// image:
//   dy = (dz - mean(dz) - (y - mean) * slope) * factor        Ioffe & Szegedy, "Batch Normalization", 2015
//   filter gradient += dy (*) image,  image gradient = w (*) dy
// and on through the relu and normalisation in front,
// by Winograd's method (internal/tiles.h).
#pragma once

#include "ops/convolution/geometry/convolution_geometry.h"
#include "runtime/graph/kernel.h"

namespace mox {

// Of the normalisations behind the convolution and before it.
struct Epsilons {
  double behind = 0, before = 0;
};

// Where image_groups.h finds groups. Of NormalisedGradientInputs
// (fused_inputs.h). Outputs dz of the normalisation before, its sums in as many
// groups as the node's type says, the filter's gradient, and those of scale and offset.
Kernel winograd_normalised_gradients_kernel(const Node& node, const ConvolutionGeometry& geometry,
                                            const Epsilons& epsilons, const Team& team);

}  // namespace mox
