#include "ops/fusion/internal/nodes/convolution_moments_node.h"

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/convolution/winograd/winograd.h"
#include "runtime/base/error.h"

namespace mox {

const Op& conv2d_moments_op() {
  static const Op op{
      .name = "conv2d_moments",
      .infer = [](const OpCall& call) -> std::vector<TensorType> {
        const auto inputs = unpack<ConvolutionInputs>(call);
        const TensorType y = check_convolution(call, inputs.image.type(), inputs.filter.type()).y;
        return {y, {DType::kFloat32, {call.attributes.get<int64_t>(kGroupsOfPixels), 3, y.shape[1]}}};
      },
      .gradient = nullptr,
      .compile =
          [](const KernelRequest& request) {
            MOX_ASSERT(!request.hints.has(kDirectConvolutions), "the rule knows of this option");
            const Node& node = request.node;
            const auto inputs = unpack<ConvolutionInputs>(node);
            return winograd_moments_kernel(
                node, resolve_convolution(node.attributes, inputs.image.type(), inputs.filter.type()),
                request.team);
          }};
  return op;
}

}  // namespace mox
