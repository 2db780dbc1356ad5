// What the convolution ops share: the relation between image, filter and output, and oneDNN's
// descriptors of it.
#pragma once

#include <string_view>

#include "ops/convolution/conv2d.h"
#include "ops/convolution/geometry/convolution_geometry.h"
#include "ops/processor/onednn.h"

namespace mox {

// A hint (KernelHints): convolutions sum directly, never through a transform that needs fewer multiplications
// but rounds more (Winograd).
inline constexpr std::string_view kDirectConvolutions = "direct_convolutions";
// An attribute of a node, present and true: the same for this convolution alone (direct_convolutions_rule).
inline constexpr const char* kSumsDirectly = "sums_directly";

const Op& conv2d_transpose_op();

Attributes convolution_attributes(const ConvolutionOptions& options);
// The options that a node was made with.
ConvolutionOptions convolution_options(const Attributes& attributes);

// For a node that exists.
ConvolutionGeometry resolve_convolution(const Attributes& attributes, const TensorType& x,
                                        const TensorType& w);
// For a call: throws InvalidArgument where image, filter and options do not fit.
ConvolutionGeometry check_convolution(const OpCall& call, const TensorType& x, const TensorType& w);

namespace onednn {

// Whether a convolution of which `image` (x or y) exists in the layout `offered` works on images with
// channels last, though oneDNN prefers blocks of channels: depthwise ones of bfloat16, which take about the
// same time with both, beside others that want channels last.
bool keeps_channels_last(const ConvolutionGeometry& geometry, const TensorType& image, const Layout& offered);

// The arguments of oneDNN's convolution descriptors. Layouts are left to the primitive, but for images that
// have channels last.
struct ConvolutionDescriptors {
  explicit ConvolutionDescriptors(const ConvolutionGeometry& geometry, bool channels_last = false);

  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
  dnnl::memory::desc x, w, y;  // w has five dimensions, [groups, ...], if there are groups
  dnnl::memory::dims strides, dilations, before, after;
};

dnnl::convolution_forward::primitive_desc describe_forward(const ConvolutionDescriptors& descriptors,
                                                           bool has_bias = false);

// Whether Winograd's kernels compute it: where they are faster, and neither hint nor
// attribute says otherwise.
bool takes_winograd(const KernelRequest& request, const ConvolutionGeometry& geometry);

// The kernel of x * w (+ bias): inputs x, w[, bias] of the request's node, output y. Empty values included.
Kernel forward_kernel(const KernelRequest& request, const ConvolutionGeometry& geometry, bool has_bias);
// The kernel of the gradient of x: inputs `w_input` and `y_input` of the node.
Kernel input_gradient_kernel(const KernelRequest& request, const ConvolutionGeometry& geometry, int w_input,
                             int y_input);

}  // namespace onednn
}  // namespace mox
