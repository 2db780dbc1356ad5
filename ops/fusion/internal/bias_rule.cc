#include "ops/fusion/internal/bias_rule.h"

#include <algorithm>

#include "ops/convolution/convolution.h"
#include "ops/fusion/internal/nodes/bias_node.h"
#include "ops/support/fusable_ops.h"

namespace mox {

namespace {

// Whether `bias` is one number a column of the matrix product `product`.
bool is_bias_of(const Tensor& bias, const Tensor& product) {
  const Shape& shape = product.shape();
  return shape.rank() == 2 && bias.shape() == Shape{shape[1]} && bias.dtype() == product.dtype();
}

std::optional<std::vector<Tensor>> add_bias(const Node& node, const RewriteView& view) {
  if (node.op != &bias_add_op() && node.op != &add_op()) return std::nullopt;
  for (const int side : {0, 1}) {
    const Tensor& sum = node.inputs[side];
    const Tensor& bias = node.inputs[1 - side];
    const Op* product = sum.node()->op;
    const bool is_convolution = product == &conv2d_op() && node.op == &bias_add_op();
    if ((!is_convolution && product != &matmul_op()) || view.uses(sum) != 1) continue;
    if (onednn::has_empty_value(*sum.node()))
      continue;  // a sum of nothing, which the primitive cannot add to
    if (node.op == &bias_add_op() && side == 1) continue;
    if (!is_convolution && !is_bias_of(bias, sum)) continue;
    const Node& old = *sum.node();
    const Op& fused = is_convolution ? conv2d_bias_op() : matmul_bias_op();
    Node& fresh =
        make_node(fused, {view.mapped(old.inputs[0]), view.mapped(old.inputs[1]), view.mapped(bias)},
                  old.attributes, node.where);
    return {{fresh.output().named(node.name)}};
  }
  return std::nullopt;
}

}  // namespace

NamedRule bias_rule() {
  return {"bias into convolution or matmul", add_bias, [](const Node& node) {
            return (node.op == &bias_add_op() || node.op == &add_op()) &&
                   std::ranges::any_of(node.inputs, [](const Tensor& input) {
                     return input.node()->op == &conv2d_op() || input.node()->op == &matmul_op();
                   });
          }};
}

}  // namespace mox
