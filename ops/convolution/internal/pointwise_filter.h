// The gradient of the filter of a 1x1 convolution, as a kernel: one matrix product with the positions of the
// images as terms.
//
// oneDNN's own leaves the gradient in blocks of channels, for a conversion to the variable's plain layout;
// this one writes it plain, and packs its images while it multiplies. Sums are in float32; those of bfloat16
// images add up the exact products of two positions at a time.
#pragma once

#include "ops/convolution/convolution.h"
#include "runtime/graph/kernel.h"

namespace mox {

// Whether this gradient can be computed so, and gains: for bfloat16 images with its instructions but
// without those for tiles (AMX), whose products have several times the rate; a window of one pixel and one
// group; no padding; channels in whole vectors; a large filter; few positions, or strides.
bool pointwise_filter_pays(const ConvolutionGeometry& geometry);

// Of node inputs x and dy; only where pointwise_filter_pays. Images are blocked by a vector of channels, the
// gradient is plain. Bitwise independent of the team.
Kernel pointwise_filter_kernel(const Node& node, const ConvolutionGeometry& geometry, const Team& team);

}  // namespace mox
