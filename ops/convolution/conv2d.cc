#include "ops/convolution/conv2d.h"

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

std::vector<TensorType> infer_conv2d(const OpCall& call) {
  return {check_convolution(call, call.type(0), call.type(1)).y};
}

std::vector<Tensor> gradient_of_conv2d(const GradientCall& call) {
  const Tensor &x = call.input(0), &w = call.input(1), &dy = call.gradient();
  const ConvolutionOptions options = convolution_options(call.node.attributes);
  return {conv2d_input_gradient(x.shape(), w, dy, options),
          conv2d_filter_gradient(x, w.shape(), dy, options)};
}

Kernel compile_conv2d(const KernelRequest& request) {
  const Node& node = request.node;
  const auto inputs = unpack<ConvolutionInputs>(node);
  const ConvolutionGeometry geometry =
      resolve_convolution(node.attributes, inputs.image.type(), inputs.filter.type());
  return onednn::forward_kernel(request, geometry, false);
}

}  // namespace

const Op& conv2d_op() {
  static const Op op{
      .name = "conv2d", .infer = infer_conv2d, .gradient = gradient_of_conv2d, .compile = compile_conv2d};
  return op;
}

Tensor conv2d(const Tensor& x, const Tensor& w, const ConvolutionOptions& options, SourceLocation where) {
  return make_tensor(conv2d_op(), {x, w}, convolution_attributes(options), where);
}

}  // namespace mox
