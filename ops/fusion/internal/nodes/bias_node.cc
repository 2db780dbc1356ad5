#include "ops/fusion/internal/nodes/bias_node.h"

#include "ops/convolution/convolution.h"
#include "ops/matmul/matrix_product.h"

namespace mox {

const Op& conv2d_bias_op() {
  static const Op op{
      .name = "conv2d_bias",
      .infer = [](const OpCall& call) -> std::vector<TensorType> {
        return {check_convolution(call, call.type(0), call.type(1)).y};
      },
      .gradient = nullptr,
      .compile =
          [](const KernelRequest& request) {
            const Node& node = request.node;
            return onednn::forward_kernel(
                request, resolve_convolution(node.attributes, node.inputs[0].type(), node.inputs[1].type()),
                true);
          }};
  return op;
}

const Op& matmul_bias_op() {
  static const Op op{.name = "matmul_bias",
                     .infer = infer_matrix_product,
                     .gradient = nullptr,
                     .compile = [](const KernelRequest& request) {
                       return matrix_product_kernel(request.node, true, request.team);
                     }};
  return op;
}

}  // namespace mox
