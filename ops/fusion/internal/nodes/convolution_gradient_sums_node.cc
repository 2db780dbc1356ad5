#include "ops/fusion/internal/nodes/convolution_gradient_sums_node.h"

#include "ops/convolution/convolution.h"
#include "ops/convolution/winograd/fused_inputs.h"
#include "ops/convolution/winograd/winograd.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

std::vector<TensorType> infer_gradient_sums(const OpCall& call) {
  const TensorType x = unpack<ReluGradientInputs>(call).x.type();
  return {x, {DType::kFloat32, {call.attributes.get<int64_t>(kGroupsOfPixels), 2, x.shape[1]}}};
}

Kernel compile_gradient_sums(const KernelRequest& request) {
  MOX_ASSERT(!request.hints.has(kDirectConvolutions), "the rule knows of this option");
  const Node& node = request.node;
  const Tensor filter = unpack<ReluGradientInputs>(node).filter;
  return winograd_relu_gradient_kernel(node,
                                       resolve_convolution(node.attributes, node.outputs[0], filter.type()),
                                       node.attributes.get<double>("epsilon"), request.team);
}

}  // namespace

const Op& conv2d_input_gradient_sums_op() {
  static const Op op{.name = "conv2d_input_gradient_sums",
                     .infer = infer_gradient_sums,
                     .gradient = nullptr,
                     .compile = compile_gradient_sums};
  return op;
}

}  // namespace mox
