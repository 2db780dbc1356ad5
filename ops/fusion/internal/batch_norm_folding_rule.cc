#include "ops/fusion/internal/batch_norm_folding_rule.h"

#include "ops/arithmetic/arithmetic.h"
#include "ops/processor/onednn.h"
#include "ops/shape/shape.h"
#include "ops/support/fusable_ops.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::optional<std::vector<Tensor>> fold(const Node& node, const RewriteView& view) {
  if (node.op != &batch_norm_inference_op()) return std::nullopt;
  const Tensor& x = node.inputs[0];
  const Node& convolution = *x.node();
  const bool has_bias = convolution.op == &conv2d_bias_op();
  if ((!has_bias && convolution.op != &conv2d_op()) || view.uses(x) != 1 ||
      onednn::has_empty_value(convolution))
    return std::nullopt;
  const Shape& filters = convolution.inputs[1].shape();
  if (filters.elements() >= x.shape().elements()) return std::nullopt;

  const Tensor scale = view.mapped(node.inputs[1]), offset = view.mapped(node.inputs[2]),
               mean = view.mapped(node.inputs[3]), variance = view.mapped(node.inputs[4]);
  const Tensor factor = mul(scale, rsqrt(add(variance, node.attributes.get<double>("epsilon"))));
  const Tensor center = has_bias ? sub(mean, view.mapped(convolution.inputs[2])) : mean;
  const Tensor w = mul(view.mapped(convolution.inputs[1]), reshape(factor, {filters[0], 1, 1, 1}));
  Node& folded =
      make_node(conv2d_bias_op(), {view.mapped(convolution.inputs[0]), w, sub(offset, mul(center, factor))},
                convolution.attributes, node.where);
  return {{folded.output().named(node.name)}};
}

}  // namespace

NamedRule batch_norm_folding_rule() { return {"batch_norm by moving averages into convolution", fold}; }

}  // namespace mox
