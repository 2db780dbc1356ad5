#include "ops/fusion/internal/convolution_normalised_gradients_rule.h"

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/convolution/winograd/fused_inputs.h"
#include "ops/convolution/winograd/image_groups.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/fusion/internal/nodes/convolution_gradient_sums_node.h"
#include "ops/fusion/internal/nodes/convolution_normalised_gradients_node.h"
#include "ops/fusion/internal/nodes/convolution_of_normalised_node.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

using normalisation::ForwardInputs;
using normalisation::FusedGradientInputs;
using normalisation::StatisticsInputs;

// The two that read the gradient `dy` of a convolution's result, if nothing else does.
struct ConvolutionGradients {
  const Node *of_image = nullptr, *of_filter = nullptr;
};
std::optional<ConvolutionGradients> readers_of_gradient(const Tensor& dy, const RewriteView& view) {
  if (view.uses(dy) != 2) return std::nullopt;
  ConvolutionGradients found;
  for (const Node* node : view.readers(dy)) {
    if (node->op == &conv2d_input_gradient_sums_op() && unpack<ReluGradientInputs>(*node).dy == dy)
      found.of_image = node;
    if (node->op == &conv2d_filter_gradient_op() && unpack<FilterGradientInputs>(*node).dy == dy &&
        !node->attributes.has(kSumsDirectly))
      found.of_filter = node;
  }
  if (!found.of_image || !found.of_filter) return std::nullopt;
  return found;
}

// Whether the convolution's image is relu of the normalised x, or the image that the other
// gradient also reads.
bool is_their_image(const Tensor& image, const ReluGradientInputs<Tensor>& of_image) {
  if (of_image.result.defined()) return image == of_image.result;
  const Node& made = *image.node();
  if (made.op == &conv2d_of_normalised_op())
    return image.index() == 2 && unpack<OfNormalisedInputs>(made).x == of_image.x;
  if (image.index() != 0) return false;
  if (made.op == &batch_norm_activation_again_op()) return unpack<StatisticsInputs>(made).x == of_image.x;
  return (made.op == &batch_norm_activation_op() || made.op == &batch_norm_activation_of_moments_op()) &&
         unpack<ForwardInputs>(made).x == of_image.x;
}

std::optional<ConvolutionGradients> replaced_with(const Node& normalisation, const RewriteView& view) {
  if (normalisation.op != &batch_norm_gradient_of_sums_op()) return std::nullopt;
  const auto found = readers_of_gradient(Tensor(const_cast<Node*>(&normalisation), 0), view);
  if (!found) return std::nullopt;
  const ReluGradientInputs<Tensor> of_image = unpack<ReluGradientInputs>(*found->of_image);
  if (!is_their_image(unpack<FilterGradientInputs>(*found->of_filter).image, of_image)) return std::nullopt;
  // The image may be made anew for the filter's gradient alone; all else must be there already.
  for (const Tensor& input : found->of_image->inputs)
    if (input.node()->id > normalisation.id) return std::nullopt;
  const ConvolutionGeometry geometry =
      resolve_convolution(found->of_image->attributes, found->of_image->outputs[0], of_image.filter.type());
  if (!winograd::image_groups_of(geometry).exist()) return std::nullopt;
  return found;
}

// At the normalisation: its gradient dy, which is no more, is stood for by the result until the next two.
std::optional<std::vector<Tensor>> make_gradients(const Node& normalisation, const RewriteView& view) {
  const auto found = replaced_with(normalisation, view);
  if (!found) return std::nullopt;
  const Node& of_image = *found->of_image;
  const FusedGradientInputs<Tensor> behind = unpack<FusedGradientInputs>(normalisation);
  const ReluGradientInputs<Tensor> before = unpack<ReluGradientInputs>(of_image);
  const NormalisedGradientInputs<Tensor> inputs{.filter = before.filter,
                                                .dz = behind.dy,
                                                .sums = behind.sums,
                                                .y = behind.x,
                                                .scale = behind.scale,
                                                .mean = behind.mean,
                                                .variance = behind.variance,
                                                .x = before.x,
                                                .scale_before = before.scale,
                                                .offset_before = before.offset,
                                                .mean_before = before.mean,
                                                .variance_before = before.variance,
                                                .more = before.more,
                                                .image = before.result};
  Attributes attributes = of_image.attributes;
  attributes.set("epsilon", normalisation.attributes.get<double>("epsilon"));
  attributes.set("epsilon_before", of_image.attributes.get<double>("epsilon"));
  Node& fresh = make_packed_node<NormalisedGradientInputs>(
      conv2d_normalised_gradients_op(), each_of<NormalisedGradientInputs>(inputs, view.mapping()),
      std::move(attributes), of_image.where);
  return {{fresh.output(0), fresh.output(3), fresh.output(4)}};
}

// At one of the convolution's two gradients: the node that replaces it, or null.
Node* replacement_of(const Tensor& dy, const RewriteView& view) {
  if (dy.node()->op != &batch_norm_gradient_of_sums_op()) return nullptr;
  Node& made = *view.mapped(dy).node();
  return made.op == &conv2d_normalised_gradients_op() ? &made : nullptr;
}

std::optional<std::vector<Tensor>> fuse_gradients(const Node& node, const RewriteView& view) {
  if (node.op == &batch_norm_gradient_of_sums_op()) return make_gradients(node, view);
  if (node.op == &conv2d_filter_gradient_op())
    if (Node* made = replacement_of(unpack<FilterGradientInputs>(node).dy, view))
      return {{made->output(2).named(node.name)}};
  if (node.op == &conv2d_input_gradient_sums_op())
    if (Node* made = replacement_of(unpack<ReluGradientInputs>(node).dy, view))
      return {{made->output(0).named(node.name), made->output(1)}};
  return std::nullopt;
}

}  // namespace

NamedRule convolution_normalised_gradients_rule() {
  return {"gradients of a convolution between two batch_norms", fuse_gradients,
          [](const Node& node) { return node.op == &batch_norm_gradient_of_sums_op(); }};
}

}  // namespace mox
