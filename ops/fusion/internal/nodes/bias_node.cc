#include "ops/fusion/internal/nodes/bias_node.h"

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/matmul/matrix_product.h"

namespace mox {

const Op& conv2d_bias_op() {
  static const Op op{
      .name = "conv2d_bias",
      .infer = [](const OpCall& call) -> std::vector<TensorType> {
        const auto inputs = unpack<ConvolutionInputs>(call);
        return {check_convolution(call, inputs.image.type(), inputs.filter.type()).y};
      },
      .gradient = nullptr,
      .compile =
          [](const KernelRequest& request) {
            const auto inputs = unpack<ConvolutionInputs>(request.node);
            return onednn::forward_kernel(
                request,
                resolve_convolution(request.node.attributes, inputs.image.type(), inputs.filter.type()),
                true);
          }};
  return op;
}

const Op& matmul_bias_op() {
  static const Op op{.name = "matmul_bias",
                     .infer = infer_matrix_product,
                     .gradient = nullptr,
                     .compile = [](const KernelRequest& request) {
                       return matrix_product_kernel(request.node, request.team);
                     }};
  return op;
}

}  // namespace mox
