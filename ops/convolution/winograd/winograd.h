// Convolutions by Winograd's minimal filtering (internal/tiles.h), as kernels.
//
// Fewer multiplications for a rounding error that is larger than that of the direct sum: rounding.h states
// its bound. Of bfloat16 images and filters the transforms are rounded to bfloat16 as well, with tiles of 4 x
// 4, which round least: the root mean square of the error against the direct sum of the same numbers is
// 0.0045 of the values', and 0.0039 in gradients of filters, whatever the shape; rounding the inputs alone
// makes 0.0021.
#pragma once

#include "ops/convolution/geometry/convolution_geometry.h"
#include "runtime/graph/kernel.h"

namespace mox {

// Whether this convolution can run so, and is large enough to gain from it: for bfloat16 with its
// instructions but without those for tiles (AMX), whose direct sums have several times the rate; one group; a
// window of 3 x 3, or in float32 of 5 x 5 with few enough channels for the transformed filter to stay in the
// cache; stride 1, or in float32 of 3 x 3 with no more than 128 x 128 channels 2, with the same padding of 0
// or 1 before rows and columns; no dilation; channels in whole vectors; enough tiles.
bool winograd_pays(const ConvolutionGeometry& geometry);

// As onednn::forward_kernel and its siblings; only where winograd_pays. Bitwise independent of the team.
Kernel winograd_forward_kernel(const Node& node, const ConvolutionGeometry& geometry, bool has_bias,
                               const Team& team);
Kernel winograd_input_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry, int w_input,
                                      int y_input, const Team& team);
Kernel winograd_filter_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry,
                                       const Team& team);

// The attribute of nodes for the kernels below: how many groups their sums are of.
inline constexpr const char* kGroupsOfPixels = "groups of pixels";

// Into how many groups of pixels winograd_moments_kernel cuts the results of this convolution; 0 where there
// is no such kernel: where winograd_pays does not hold, of bfloat16 images, and of filters that are too large
// for a core's cache.
int64_t winograd_moment_groups(const ConvolutionGeometry& geometry);
// As the forward kernel, and besides as output 1 float32 [groups, 3, channels]: how many pixels each group
// has, their mean, and the sum of their squared distances from it (conv2d_moments).
Kernel winograd_moments_kernel(const Node& node, const ConvolutionGeometry& geometry, const Team& team);

// The same two for the gradient of the image where this is what relu made of a batch normalisation: the
// kernel's output 0 is the gradient of what relu was given, and output 1 float32 [groups, 2, channels], sums
// over each group of pixels (conv2d_input_gradient_sums).
int64_t winograd_relu_gradient_groups(const ConvolutionGeometry& geometry);
// Its node has ReluGradientInputs (fused_inputs.h).
Kernel winograd_relu_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry, double epsilon,
                                     const Team& team);

// The same for a transformed filter that is larger than a core's cache (Problem::is_wide): the three above
// choose them.
Kernel winograd_wide_forward_kernel(const Node& node, const ConvolutionGeometry& geometry, bool has_bias);
Kernel winograd_wide_input_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry, int w_input,
                                           int y_input);
Kernel winograd_wide_filter_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry);

// The same of bfloat16 images and filters: the three above choose them.
Kernel winograd_bf16_forward_kernel(const Node& node, const ConvolutionGeometry& geometry, bool has_bias,
                                    const Team& team);
Kernel winograd_bf16_input_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry, int w_input,
                                           int y_input, const Team& team);
Kernel winograd_bf16_filter_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry);

}  // namespace mox
