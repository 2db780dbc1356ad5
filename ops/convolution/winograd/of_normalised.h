// Convolutions of what a batch normalisation and relu make, a few images at a time: the normalised image is
// still in the core's cache when the convolution reads it, and goes to memory only if something
// else wants it.
#pragma once

#include "ops/convolution/geometry/convolution_geometry.h"
#include "runtime/graph/kernel.h"

namespace mox {

// Into how many groups of pixels the kernel cuts its results; 0 where image_groups.h finds none, and
// there is no kernel.
int64_t winograd_of_normalised_groups(const ConvolutionGeometry& geometry);

// Of OfNormalisedInputs (fused_inputs.h). Outputs y, the convolution of z = relu((x - mean) * scale /
// sqrt(variance + epsilon) + offset [+ residual]), its moments (as those of winograd_moments_kernel), and z
// if the node has a third output.
Kernel winograd_of_normalised_kernel(const Node& node, const ConvolutionGeometry& geometry, double epsilon,
                                     const Team& team);

}  // namespace mox
