#include <fmt/format.h>

#include "ops/convolution/conv2d.h"
#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

std::vector<TensorType> infer_conv2d_input_gradient(const OpCall& call) {
  const TensorType x = forward_image_type(call.attributes);
  const ConvolutionGeometry geometry = check_convolution(call, x, call.type(0));
  if (call.type(1) != geometry.y)
    call.fail(fmt::format("dy of the convolution's output type {}", to_string(geometry.y)));
  return {x};
}

std::vector<Tensor> gradient_of_conv2d_input_gradient(const GradientCall& call) {
  const Tensor &w = call.input(0), &dy = call.input(1), &g = call.gradient();
  const ConvolutionOptions options = convolution_options(call.node.attributes);
  return {conv2d_filter_gradient(g, w.shape(), dy, options), conv2d(g, w, options)};
}

Kernel compile_conv2d_input_gradient(const KernelRequest& request) {
  const Node& node = request.node;
  const ConvolutionGeometry geometry =
      resolve_convolution(node.attributes, node.outputs[0], unpack<ImageGradientInputs>(node).filter.type());
  const auto inputs = positions<ImageGradientInputs>(node);
  return onednn::input_gradient_kernel(request, geometry, inputs.filter.index, inputs.dy.index);
}

}  // namespace

const Op& conv2d_input_gradient_op() {
  static const Op op{.name = "conv2d_input_gradient",
                     .infer = infer_conv2d_input_gradient,
                     .gradient = gradient_of_conv2d_input_gradient,
                     .compile = compile_conv2d_input_gradient};
  return op;
}

Tensor conv2d_input_gradient(const Shape& x_shape, const Tensor& w, const Tensor& dy,
                             const ConvolutionOptions& options, SourceLocation where) {
  Attributes attributes = convolution_attributes(options);
  attributes.set("x_shape", std::vector<int64_t>(x_shape.begin(), x_shape.end()));
  return make_tensor(conv2d_input_gradient_op(), {w, dy}, std::move(attributes), where);
}

}  // namespace mox
