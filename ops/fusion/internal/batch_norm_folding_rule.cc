#include "ops/fusion/internal/batch_norm_folding_rule.h"

#include "ops/arithmetic/arithmetic.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/fusion/internal/nodes/bias_node.h"
#include "ops/normalisation/batch_norm_inputs.h"
#include "ops/processor/onednn.h"
#include "ops/shape/shape.h"
#include "ops/support/fusable_ops.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::optional<std::vector<Tensor>> fold(const Node& node, const RewriteView& view) {
  if (node.op != &batch_norm_inference_op()) return std::nullopt;
  const auto inputs = unpack<normalisation::StatisticsInputs>(node);
  const Tensor& x = inputs.x;
  const Node& convolution = *x.node();
  const bool has_bias = convolution.op == &conv2d_bias_op();
  if ((!has_bias && convolution.op != &conv2d_op()) || view.uses(x) != 1 ||
      onednn::has_empty_value(convolution))
    return std::nullopt;
  const ConvolutionInputs<Tensor> convolved = unpack<ConvolutionInputs>(convolution);
  const Shape& filters = convolved.filter.shape();
  if (filters.elements() >= x.shape().elements()) return std::nullopt;

  const auto [image, scale, offset, mean, variance] =
      each_of<normalisation::StatisticsInputs>(inputs, view.mapping());
  const Tensor factor = mul(scale, rsqrt(add(variance, node.attributes.get<double>("epsilon"))));
  const Tensor center = has_bias ? sub(mean, view.mapped(convolved.bias)) : mean;
  const Tensor w = mul(view.mapped(convolved.filter), reshape(factor, {filters[0], 1, 1, 1}));
  const ConvolutionInputs<Tensor> scaled{
      .image = view.mapped(convolved.image), .filter = w, .bias = sub(offset, mul(center, factor))};
  const TraitsScope traits(convolution.traits);  // in the precision of its scope
  Node& folded = make_node(conv2d_bias_op(), in_order(scaled), convolution.attributes, node.where);
  return {{folded.output().named(node.name)}};
}

}  // namespace

NamedRule batch_norm_folding_rule() {
  return {"batch_norm by moving averages into convolution", fold,
          [](const Node& node) { return node.op == &batch_norm_inference_op(); }};
}

}  // namespace mox
