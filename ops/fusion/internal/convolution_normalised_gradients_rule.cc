#include "ops/fusion/internal/convolution_normalised_gradients_rule.h"

#include "ops/convolution/winograd/image_groups.h"
#include "ops/convolution/winograd/normalised_gradients.h"
#include "ops/convolution/winograd/of_normalised.h"
#include "ops/convolution/winograd/winograd.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/fusion/internal/convolution_gradient_sums_rule.h"
#include "ops/fusion/internal/convolution_of_normalised_rule.h"
#include "ops/support/fusable_ops.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

// Positions among the inputs of the nodes that are replaced.
struct OfNormalisation {
  enum : size_t { kY, kScale, kMean, kVariance, kDz, kSums };
};
struct OfImageGradient {
  enum : size_t { kFilter, kDy, kX };  // and those behind kX
};
struct OfFilterGradient {
  enum : size_t { kImage, kDy };
};

ConvolutionGeometry geometry_of_node(const Node& node) {
  return resolve_convolution(node.attributes, node.inputs[NormalisedGradientInputs::kX].type(),
                             node.inputs[NormalisedGradientInputs::kFilter].type());
}

// The two that read the gradient `dy` of a convolution's result, if nothing else does.
struct ConvolutionGradients {
  const Node *of_image = nullptr, *of_filter = nullptr;
};
std::optional<ConvolutionGradients> readers_of_gradient(const Tensor& dy, const RewriteView& view) {
  if (view.uses(dy) != 2) return std::nullopt;
  ConvolutionGradients found;
  const auto& nodes = dy.node()->graph->nodes();
  for (size_t id = static_cast<size_t>(dy.node()->id) + 1; id < nodes.size(); ++id) {
    const Node& node = *nodes[id];
    if (node.op == &conv2d_input_gradient_sums_op() && node.inputs[OfImageGradient::kDy] == dy)
      found.of_image = &node;
    if (node.op == &conv2d_filter_gradient_op() && node.inputs[OfFilterGradient::kDy] == dy)
      found.of_filter = &node;
  }
  if (!found.of_image || !found.of_filter) return std::nullopt;
  return found;
}

// Whether the convolution's image is relu of the normalised x, or the image that the other gradient also
// reads.
bool is_their_image(const Tensor& image, const Node& of_image) {
  if (of_image.attributes.get<bool>("has_y")) return image == of_image.inputs.back();
  const Node& made = *image.node();
  if (made.op == &conv2d_of_normalised_op())
    return image.index() == 2 && made.inputs[OfNormalisedInputs::kX] == of_image.inputs[OfImageGradient::kX];
  const bool is_normalised = made.op == &batch_norm_activation_op() ||
                             made.op == &batch_norm_activation_of_moments_op() ||
                             made.op == &batch_norm_activation_again_op();
  return is_normalised && image.index() == 0 && made.inputs[0] == of_image.inputs[OfImageGradient::kX];
}

std::optional<ConvolutionGradients> replaced_with(const Node& normalisation, const RewriteView& view) {
  if (normalisation.op != &batch_norm_gradient_of_sums_op()) return std::nullopt;
  const auto found = readers_of_gradient(Tensor(const_cast<Node*>(&normalisation), 0), view);
  if (!found || !is_their_image(found->of_filter->inputs[OfFilterGradient::kImage], *found->of_image))
    return std::nullopt;
  // The image may be made anew for the filter's gradient alone; all else must be there already.
  for (const Tensor& input : found->of_image->inputs)
    if (input.node()->id > normalisation.id) return std::nullopt;
  const ConvolutionGeometry geometry =
      resolve_convolution(found->of_image->attributes, found->of_image->outputs[0],
                          found->of_image->inputs[OfImageGradient::kFilter].type());
  if (!winograd::image_groups_of(geometry).exist()) return std::nullopt;
  return found;
}

// At the normalisation: its gradient dy, which is no more, is stood for by the result until the next two.
std::optional<std::vector<Tensor>> make_gradients(const Node& normalisation, const RewriteView& view) {
  const auto found = replaced_with(normalisation, view);
  if (!found) return std::nullopt;
  const Node& of_image = *found->of_image;
  const bool has_more = of_image.attributes.get<bool>("has_more"),
             has_image = of_image.attributes.get<bool>("has_y");
  std::vector<Tensor> inputs = {view.mapped(of_image.inputs[OfImageGradient::kFilter])};
  using From = OfNormalisation;
  for (const size_t i : {From::kDz, From::kSums, From::kY, From::kScale, From::kMean, From::kVariance})
    inputs.push_back(view.mapped(normalisation.inputs[i]));
  for (size_t i = OfImageGradient::kX; i < of_image.inputs.size(); ++i)
    inputs.push_back(view.mapped(of_image.inputs[i]));
  Attributes attributes = of_image.attributes;
  attributes.set("epsilon", normalisation.attributes.get<double>("epsilon"));
  attributes.set("epsilon_before", of_image.attributes.get<double>("epsilon"));
  attributes.set("has_more", has_more);
  attributes.set("has_image", has_image);
  Node& fresh =
      make_node(conv2d_normalised_gradients_op(), std::move(inputs), std::move(attributes), of_image.where);
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
    if (Node* made = replacement_of(node.inputs[OfFilterGradient::kDy], view))
      return {{made->output(2).named(node.name)}};
  if (node.op == &conv2d_input_gradient_sums_op())
    if (Node* made = replacement_of(node.inputs[OfImageGradient::kDy], view))
      return {{made->output(0).named(node.name), made->output(1)}};
  return std::nullopt;
}

Kernel compile_gradients(const KernelRequest& request) {
  MOX_ASSERT(!request.direct_convolutions, "the rule before this one knows of this option");
  const Node& node = request.node;
  NormalisedGradientInputs inputs{.epsilon = node.attributes.get<double>("epsilon"),
                                  .epsilon_before = node.attributes.get<double>("epsilon_before")};
  int next = NormalisedGradientInputs::kOptional;
  if (node.attributes.get<bool>("has_more")) inputs.more = next++;
  if (node.attributes.get<bool>("has_image")) inputs.image = next;
  return winograd_normalised_gradients_kernel(node, geometry_of_node(node), inputs, request.team);
}

}  // namespace

const Op& conv2d_normalised_gradients_op() {
  static const Op op{.name = "conv2d_normalised_gradients",
                     .infer = [](const OpCall& call) -> std::vector<TensorType> {
                       const TensorType &x = call.type(NormalisedGradientInputs::kX),
                                        &w = call.type(NormalisedGradientInputs::kFilter),
                                        &channels = call.type(NormalisedGradientInputs::kScale);
                       return {
                           x,
                           {DType::kFloat32, {call.attributes.get<int64_t>(kGroupsOfPixels), 2, x.shape[1]}},
                           w,
                           channels,
                           channels};
                     },
                     .gradient = nullptr,
                     .compile = compile_gradients};
  return op;
}

NamedRule convolution_normalised_gradients_rule() {
  return {"gradients of a convolution between two batch_norms", fuse_gradients};
}

}  // namespace mox
