#include "ops/fusion/internal/nodes/convolution_normalised_gradients_node.h"

#include "ops/convolution/convolution.h"
#include "ops/convolution/winograd/fused_inputs.h"
#include "ops/convolution/winograd/normalised_gradients.h"
#include "ops/convolution/winograd/winograd.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

Kernel compile_gradients(const KernelRequest& request) {
  MOX_ASSERT(!request.hints.has(kDirectConvolutions), "the rule before this one knows of this option");
  const Node& node = request.node;
  const NormalisedGradientInputs<Tensor> inputs = unpack<NormalisedGradientInputs>(node);
  return winograd_normalised_gradients_kernel(
      node, resolve_convolution(node.attributes, inputs.x.type(), inputs.filter.type()),
      {.behind = node.attributes.get<double>("epsilon"),
       .before = node.attributes.get<double>("epsilon_before")},
      request.team);
}

}  // namespace

const Op& conv2d_normalised_gradients_op() {
  static const Op op{
      .name = "conv2d_normalised_gradients",
      .infer = [](const OpCall& call) -> std::vector<TensorType> {
        const NormalisedGradientInputs<Tensor> inputs = unpack<NormalisedGradientInputs>(call);
        const TensorType &x = inputs.x.type(), &w = inputs.filter.type(), &channels = inputs.scale.type();
        return {x,
                {DType::kFloat32, {call.attributes.get<int64_t>(kGroupsOfPixels), 2, x.shape[1]}},
                w,
                channels,
                channels};
      },
      .gradient = nullptr,
      .compile = compile_gradients};
  return op;
}

}  // namespace mox
