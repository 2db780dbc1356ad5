// Convolutions by Winograd's minimal filtering (winograd_tiles.h), as kernels.
//
// Fewer multiplications for a rounding error that is larger than that of the direct sum: for values of magnitude 1 the
// largest error measured is 6e-6 of the result's largest magnitude (tests/ops/winograd_test.cc holds it below 1e-5).
#pragma once

#include "ops/internal/convolution.h"
#include "runtime/graph/kernel.h"

namespace mox {

// Whether this convolution can run so, and is large enough to gain from it: AVX-512; one group; a window of 3 x 3 or 5 x 5
// with stride 1 and no dilation; channels in whole blocks of 16, few enough for the transformed filter to stay in the
// cache; enough tiles.
bool winograd_pays(const ConvolutionGeometry& geometry);

// As onednn::forward_kernel and its siblings; only where winograd_pays. Bitwise independent of the team.
Kernel winograd_forward_kernel(const Node& node, const ConvolutionGeometry& geometry, bool has_bias,
                               const Team& team);
Kernel winograd_backward_input_kernel(const Node& node, const ConvolutionGeometry& geometry, int w_input,
                                      int y_input, const Team& team);
Kernel winograd_backward_filter_kernel(const Node& node, const ConvolutionGeometry& geometry);

}  // namespace mox
