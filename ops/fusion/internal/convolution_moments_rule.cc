#include "ops/fusion/internal/convolution_moments_rule.h"

#include <algorithm>

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/convolution/winograd/fused_inputs.h"
#include "ops/convolution/winograd/of_normalised.h"
#include "ops/convolution/winograd/winograd.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/fusion/internal/convolution_of_normalised_rule.h"
#include "ops/fusion/internal/nodes/convolution_moments_node.h"
#include "ops/fusion/internal/nodes/convolution_of_normalised_node.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

using normalisation::ForwardInputs;

ConvolutionGeometry geometry_of(const Node& node) {
  const ConvolutionInputs<Tensor> inputs = unpack<ConvolutionInputs>(node);
  return resolve_convolution(node.attributes, inputs.image.type(), inputs.filter.type());
}

bool is_normalised(const Node& convolution, const RewriteView& view) {
  return std::ranges::any_of(view.readers(Tensor(const_cast<Node*>(&convolution), 0)),
                             [&](const Node* reader) {
                               return reader->op == &batch_norm_activation_op() &&
                                      unpack<ForwardInputs>(*reader).x.node() == &convolution;
                             });
}

// At a convolution whose image is what a normalisation gave, of the kind that
// convolution_of_normalised finds.
std::vector<Tensor> convolve_normalised(const Node& node, const RewriteView& view) {
  const auto [image, filter, bias] = unpack<ConvolutionInputs>(node);
  const Node& normalisation = *image.node();
  // A batch_norm_activation_of_moments, which this replaces.
  const ForwardInputs<Tensor> alone = unpack<ForwardInputs>(*view.mapped(image).node());
  const Tensor residual = unpack<ForwardInputs>(normalisation).residual;
  const OfNormalisedInputs<Tensor> inputs{.filter = view.mapped(filter),
                                          .x = alone.x,
                                          .scale = alone.scale,
                                          .offset = alone.offset,
                                          .mean = view.mapped(Tensor(image.node(), 1)),
                                          .variance = view.mapped(Tensor(image.node(), 2)),
                                          .residual = residual.defined() ? view.mapped(residual) : residual};
  Attributes attributes = node.attributes;
  attributes.set("epsilon", normalisation.attributes.get<double>("epsilon"));
  attributes.set("has_image", true);
  attributes.set(kGroupsOfPixels, winograd_of_normalised_groups(geometry_of(node)));
  Node& fresh = make_packed_node<OfNormalisedInputs>(conv2d_of_normalised_op(), inputs, std::move(attributes),
                                                     node.where);
  view.redirect(image, fresh.output(2).named(normalisation.name));
  return {fresh.output(0).named(node.name)};
}

bool is_convolved_at_once(const Node& node, const RewriteView& view) {
  const Tensor image = unpack<ConvolutionInputs>(node).image;
  return image.index() == 0 && image.node()->op == &batch_norm_activation_op() &&
         view.mapped(image).node()->op == &batch_norm_activation_of_moments_op() &&
         convolution_of_normalised(*image.node(), view) == &node;
}

// The groups of pixels of which a convolution can give moments; 0 if it cannot.
int64_t moment_groups_of(const Node& node) {
  if (node.op != &conv2d_op() || node.attributes.has(kSumsDirectly)) return 0;
  return winograd_moment_groups(geometry_of(node));
}

std::optional<std::vector<Tensor>> give_moments(const Node& node, const RewriteView& view) {
  if (is_convolved_at_once(node, view)) return convolve_normalised(node, view);
  const int64_t groups = moment_groups_of(node);
  if (groups == 0 || !is_normalised(node, view)) return std::nullopt;
  Attributes attributes = node.attributes;
  attributes.set(kGroupsOfPixels, groups);
  const auto inputs = each_of<ConvolutionInputs>(unpack<ConvolutionInputs>(node), view.mapping());
  Node& fresh = make_node(conv2d_moments_op(), in_order(inputs), std::move(attributes), node.where);
  return {{fresh.output(0).named(node.name)}};
}

std::optional<std::vector<Tensor>> take_moments(const Node& node, const RewriteView& view) {
  auto inputs = each_of<ForwardInputs>(unpack<ForwardInputs>(node), view.mapping());
  Node& convolution = *inputs.x.node();
  // The moments are those of the convolution's result, and of no other output, such as a normalised image.
  if (inputs.x.index() != 0 ||
      (convolution.op != &conv2d_moments_op() && convolution.op != &conv2d_of_normalised_op()))
    return std::nullopt;
  inputs.moments = convolution.output(1);
  Node& fresh = make_packed_node<ForwardInputs>(batch_norm_activation_of_moments_op(), inputs,
                                                node.attributes, node.where);
  const Tensor y = fresh.output(0).named(node.name);
  if (!convolution_of_normalised(node, view)) return {{y, fresh.output(1), fresh.output(2)}};
  Node& statistics = make_node(statistics_of_moments_op(), {inputs.moments}, {}, node.where);
  return {{y, statistics.output(0), statistics.output(1)}};
}

}  // namespace

NamedRule convolution_moments_rule(bool direct_convolutions) {
  return {
      "moments of a convolution for its batch_norm",
      [direct_convolutions](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
        if (direct_convolutions) return std::nullopt;
        if (node.op == &conv2d_op()) return give_moments(node, view);
        if (node.op == &batch_norm_activation_op()) return take_moments(node, view);
        return std::nullopt;
      },
      // What else it does follows from the first that gives them.
      [direct_convolutions](const Node& node) { return !direct_convolutions && moment_groups_of(node) > 0; }};
}

}  // namespace mox
