#include <fmt/format.h>

#include "ops/convolution/conv2d.h"
#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/convolution/internal/pointwise_filter.h"
#include "ops/convolution/winograd/winograd.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

TensorType filter_type(const Attributes& attributes) {
  return {DType::kFloat32, Shape(attributes.get<std::vector<int64_t>>("w_shape"))};
}

std::vector<TensorType> infer_conv2d_filter_gradient(const OpCall& call) {
  const TensorType w = filter_type(call.attributes);
  const ConvolutionGeometry geometry = check_convolution(call, call.type(0), w);
  if (call.type(1) != geometry.y)
    call.fail(fmt::format("dy of the convolution's output type {}", to_string(geometry.y)));
  return {w};
}

std::vector<Tensor> gradient_of_conv2d_filter_gradient(const GradientCall& call) {
  const Tensor &x = call.input(0), &dy = call.input(1), &g = call.gradient();
  const ConvolutionOptions options = convolution_options(call.node.attributes);
  return {conv2d_input_gradient(x.shape(), g, dy, options), conv2d(x, g, options)};
}

// oneDNN's gradient comes out in the layout that the primitive chooses; the compiler adds one reorder to the
// plain layout of the variable, which is small beside the sum over the batch. Our own kernels write it plain.
Kernel compile_conv2d_filter_gradient(const KernelRequest& request) {
  const Node& node = request.node;
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  const ConvolutionGeometry geometry = resolve_convolution(
      node.attributes, unpack<FilterGradientInputs>(node).image.type(), filter_type(node.attributes));
  if (onednn::takes_winograd(request, geometry))
    return winograd_filter_gradient_kernel(node, geometry, request.team);
  if (pointwise_filter_pays(geometry)) return pointwise_filter_kernel(node, geometry, request.team);
  const auto inputs = positions<FilterGradientInputs>(node);
  const bool channels_last =
      onednn::keeps_channels_last(geometry, geometry.x, request.input_layouts[inputs.image.index]);
  const onednn::ConvolutionDescriptors d(geometry, channels_last);
  // The forward pass that the primitive belongs to has its filter in the dtype of the image, whatever the
  // gradient's is.
  ConvolutionGeometry forward = geometry;
  forward.w.dtype = geometry.x.dtype;
  const auto description = onednn::describe_gradient<dnnl::convolution_backward_weights>(
      onednn::describe_forward(onednn::ConvolutionDescriptors(forward, channels_last)), d.algorithm, d.x, d.w,
      d.y, d.strides, d.dilations, d.before, d.after);
  Kernel kernel = onednn::primitive_kernel(
      node, description,
      {onednn::primitive_input(DNNL_ARG_SRC, inputs.image.index, description.src_desc()),
       onednn::primitive_input(DNNL_ARG_DIFF_DST, inputs.dy.index, description.diff_dst_desc()),
       onednn::primitive_output(DNNL_ARG_DIFF_WEIGHTS, 0, description.diff_weights_desc())});
  kernel.floating_point_operations = geometry.floating_point_operations();
  return kernel;
}

}  // namespace

const Op& conv2d_filter_gradient_op() {
  static const Op op{.name = "conv2d_filter_gradient",
                     .infer = infer_conv2d_filter_gradient,
                     .gradient = gradient_of_conv2d_filter_gradient,
                     .compile = compile_conv2d_filter_gradient};
  return op;
}

Tensor conv2d_filter_gradient(const Tensor& x, const Shape& w_shape, const Tensor& dy,
                              const ConvolutionOptions& options, SourceLocation where) {
  Attributes attributes = convolution_attributes(options);
  attributes.set("w_shape", std::vector<int64_t>(w_shape.begin(), w_shape.end()));
  return make_tensor(conv2d_filter_gradient_op(), {x, dy}, std::move(attributes), where);
}

}  // namespace mox
