#include "ops/fusion/internal/bias_rule.h"

#include <algorithm>

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/fusion/internal/nodes/bias_node.h"
#include "ops/matmul/matmul_inputs.h"
#include "ops/support/fusable_ops.h"

namespace mox {

namespace {

// Whether `bias` is one number a column of the matrix product `product`.
bool is_bias_of(const Tensor& bias, const Tensor& product) {
  const Shape& shape = product.shape();
  return shape.rank() == 2 && bias.shape() == Shape{shape[1]} && bias.dtype() == product.dtype();
}

// `product` with the bias, as a node of `fused`.
template <template <typename> typename ProductInputs>
Node& with_bias(const Op& fused, const Node& product, const Tensor& bias, const RewriteView& view,
                SourceLocation where) {
  ProductInputs<Tensor> inputs = unpack<ProductInputs>(product);
  inputs.bias = bias;
  const TraitsScope traits(product.traits);  // in the precision of the product's scope, and its stretch
  return make_node(fused, in_order(each_of<ProductInputs>(inputs, view.mapping())), product.attributes,
                   where);
}

std::optional<std::vector<Tensor>> add_bias(const Node& node, const RewriteView& view) {
  if (node.op != &bias_add_op() && node.op != &add_op()) return std::nullopt;
  for (const int side : {0, 1}) {
    const Tensor& sum = node.inputs[side];
    const Tensor& bias = node.inputs[1 - side];
    const Op* product = sum.node()->op;
    const bool is_convolution = product == &conv2d_op() && node.op == &bias_add_op();
    if ((!is_convolution && product != &matmul_op()) || view.uses(sum) != 1) continue;
    // A sum of nothing, which the primitive cannot add to.
    if (onednn::has_empty_value(*sum.node())) continue;
    if (node.op == &bias_add_op() && side == 1) continue;
    if (!is_convolution && !is_bias_of(bias, sum)) continue;
    const Node& old = *sum.node();
    Node& fresh = is_convolution ? with_bias<ConvolutionInputs>(conv2d_bias_op(), old, bias, view, node.where)
                                 : with_bias<MatmulInputs>(matmul_bias_op(), old, bias, view, node.where);
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
