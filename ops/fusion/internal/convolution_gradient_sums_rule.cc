#include "ops/fusion/internal/convolution_gradient_sums_rule.h"

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/convolution/winograd/fused_inputs.h"
#include "ops/convolution/winograd/winograd.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/fusion/internal/nodes/convolution_gradient_sums_node.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

using normalisation::FusedGradientInputs;

ConvolutionGeometry gradient_geometry_of(const Node& convolution) {
  return resolve_convolution(convolution.attributes, convolution.outputs[0],
                             unpack<ImageGradientInputs>(convolution).filter.type());
}

// Whether a node computes the gradient of an image, and may compute sums with it.
bool may_give_sums(const Node& node) {
  return node.op == &conv2d_input_gradient_op() && !node.attributes.has(kSumsDirectly) &&
         winograd_relu_gradient_groups(gradient_geometry_of(node)) > 0;
}

// Whether this gradient of the normalisation's result comes from a convolution that can do more.
bool gives_sums(const Tensor& dy, const RewriteView& view) {
  return may_give_sums(*dy.node()) && view.uses(dy) == 1;
}

// At a batch_norm_activation_gradient: both nodes are made anew.
std::optional<std::vector<Tensor>> fuse_gradient_sums(const Node& node, const RewriteView& view) {
  const Attributes& of_normalisation = node.attributes;
  if (node.op != &batch_norm_activation_gradient_op() || !of_normalisation.get<bool>("open") ||
      node.outputs[0].dtype != DType::kFloat32)
    return std::nullopt;
  FusedGradientInputs<Tensor> old = unpack<FusedGradientInputs>(node);
  if (old.dy_more.defined() && !gives_sums(old.dy, view)) std::swap(old.dy, old.dy_more);
  if (!gives_sums(old.dy, view)) return std::nullopt;

  const Node& convolution = *old.dy.node();
  const ImageGradientInputs<Tensor> of_convolution = unpack<ImageGradientInputs>(convolution);
  const auto inputs = each_of<ReluGradientInputs>({.filter = of_convolution.filter,
                                                   .dy = of_convolution.dy,
                                                   .x = old.x,
                                                   .scale = old.scale,
                                                   .offset = old.offset,
                                                   .mean = old.mean,
                                                   .variance = old.variance,
                                                   .more = old.dy_more,
                                                   .result = old.y},
                                                  view.mapping());
  Attributes attributes = convolution.attributes;
  attributes.set("epsilon", of_normalisation.get<double>("epsilon"));
  attributes.set(kGroupsOfPixels, winograd_relu_gradient_groups(gradient_geometry_of(convolution)));
  Node& sums = make_packed_node<ReluGradientInputs>(conv2d_input_gradient_sums_op(), inputs,
                                                    std::move(attributes), convolution.where);
  return gradients_of_sums(node, {.x = inputs.x,
                                  .scale = inputs.scale,
                                  .mean = inputs.mean,
                                  .variance = inputs.variance,
                                  .dy = sums.output(0),
                                  .sums = sums.output(1)});
}

}  // namespace

NamedRule convolution_gradient_sums_rule(bool direct_convolutions) {
  return {
      "sums of a convolution's gradient for its batch_norm",
      [direct_convolutions](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
        if (direct_convolutions) return std::nullopt;
        return fuse_gradient_sums(node, view);
      },
      [direct_convolutions](const Node& node) { return !direct_convolutions && may_give_sums(node); }};
}

}  // namespace mox
