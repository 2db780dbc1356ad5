#include "ops/fusion/internal/depthwise_rule.h"

#include <algorithm>

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/convolution/depthwise/depthwise.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/fusion/depthwise_node.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

using normalisation::ForwardInputs;
using normalisation::FusedGradientInputs;
using normalisation::StatisticsInputs;

Tensor result_of(const Node& node, int i = 0) { return Tensor(const_cast<Node*>(&node), i); }

// The attributes of a convolution with those of a normalisation with activation.
Attributes joined(Attributes convolution, const Attributes& normalisation) {
  for (const char* name : {"epsilon", "low", "high"}) convolution.set(name, normalisation.get<double>(name));
  convolution.set("open", normalisation.get<bool>("open"));
  return convolution;
}

// A normalisation with its activation and nothing else, or the same made again.
std::optional<StatisticsInputs<Tensor>> normalised_from(const Tensor& image) {
  const Node& made = *image.node();
  if (image.index() != 0) return std::nullopt;
  if (made.op == &batch_norm_activation_again_op()) return unpack<StatisticsInputs>(made);
  if (made.op != &batch_norm_activation_op()) return std::nullopt;
  const ForwardInputs<Tensor> inputs = unpack<ForwardInputs>(made);
  if (inputs.residual.defined()) return std::nullopt;
  return StatisticsInputs<Tensor>{.x = inputs.x,
                                  .scale = inputs.scale,
                                  .offset = inputs.offset,
                                  .mean = result_of(made, 1),
                                  .variance = result_of(made, 2)};
}

// The nodes that become one.
struct GradientNodes {
  const Node *of_image, *of_filter, *of_normalisation;
};

// The conv2d_filter_gradient of what `normalisation` reads, normalised, and of `dy`; or null.
const Node* filter_gradient_of(const Tensor& dy, const Node& of_normalisation, const RewriteView& view) {
  const FusedGradientInputs<Tensor> inputs = unpack<FusedGradientInputs>(of_normalisation);
  for (const Node* reader : view.readers(dy)) {
    if (reader->op != &conv2d_filter_gradient_op() || unpack<FilterGradientInputs>(*reader).dy != dy)
      continue;
    const auto image = normalised_from(unpack<FilterGradientInputs>(*reader).image);
    if (image && image->x == inputs.x && image->scale == inputs.scale && image->offset == inputs.offset &&
        image->mean == inputs.mean && image->variance == inputs.variance)
      return reader;
  }
  return nullptr;
}

std::optional<GradientNodes> gradients_of(const Node& of_image, const RewriteView& view) {
  const Tensor gradient = result_of(of_image), dy = unpack<ImageGradientInputs>(of_image).dy;
  const auto readers = view.readers(gradient);
  if (view.uses(gradient) != 1 || readers.size() != 1) return std::nullopt;
  const Node& of_normalisation = *readers[0];
  if (of_normalisation.op != &batch_norm_activation_gradient_op()) return std::nullopt;
  const FusedGradientInputs<Tensor> inputs = unpack<FusedGradientInputs>(of_normalisation);
  if (inputs.dy_more.defined() || inputs.y.defined()) return std::nullopt;
  const ConvolutionGeometry geometry = resolve_convolution(
      of_image.attributes, of_image.outputs[0], unpack<ImageGradientInputs>(of_image).filter.type());
  if (!depthwise_is_fused(geometry)) return std::nullopt;
  const Node* of_filter = filter_gradient_of(dy, of_normalisation, view);
  if (!of_filter || of_filter->outputs[0] != geometry.w ||
      resolve_convolution(of_filter->attributes, geometry.x, geometry.w).window != geometry.window)
    return std::nullopt;
  // What is computed again for the filter's gradient may come between the two: too late for one node.
  const int64_t first = std::min(of_image.id, of_filter->id);
  for (const Tensor& input : {inputs.x, inputs.scale, inputs.offset, inputs.mean, inputs.variance})
    if (input.node()->id > first) return std::nullopt;
  return GradientNodes{&of_image, of_filter, &of_normalisation};
}

// The same, at any of the three.
std::optional<GradientNodes> gradients_at(const Node& node, const RewriteView& view) {
  if (node.op == &conv2d_input_gradient_op()) return gradients_of(node, view);
  if (node.op == &batch_norm_activation_gradient_op()) {
    const Node& of_image = *unpack<FusedGradientInputs>(node).dy.node();
    if (of_image.op != &conv2d_input_gradient_op()) return std::nullopt;
    return gradients_of(of_image, view);
  }
  if (node.op != &conv2d_filter_gradient_op()) return std::nullopt;
  for (const Node* reader : view.readers(unpack<FilterGradientInputs>(node).dy)) {
    if (reader->op != &conv2d_input_gradient_op()) continue;
    const auto found = gradients_of(*reader, view);
    if (found && found->of_filter == &node) return found;
  }
  return std::nullopt;
}

// What replaces them: made at the first of the two gradients of the convolution, where all that it
// reads is there.
Node& fused_gradients(const Node& node, const GradientNodes& of, const RewriteView& view) {
  const Node& first = of.of_image->id < of.of_filter->id ? *of.of_image : *of.of_filter;
  if (&node != &first) return *view.mapped(result_of(first)).node();
  const FusedGradientInputs<Tensor> before = unpack<FusedGradientInputs>(*of.of_normalisation);
  const ImageGradientInputs<Tensor> convolution = unpack<ImageGradientInputs>(*of.of_image);
  return make_packed_node<DepthwiseGradientsInputs>(
      depthwise_normalised_gradients_op(),
      each_of<DepthwiseGradientsInputs>({.filter = convolution.filter,
                                         .dy = convolution.dy,
                                         .x = before.x,
                                         .scale = before.scale,
                                         .offset = before.offset,
                                         .mean = before.mean,
                                         .variance = before.variance},
                                        view.mapping()),
      joined(of.of_image->attributes, of.of_normalisation->attributes), of.of_image->where);
}

std::optional<std::vector<Tensor>> fuse_gradients_of_depthwise(const Node& node, const RewriteView& view) {
  const auto found = gradients_at(node, view);
  if (!found) return std::nullopt;
  Node& fused = fused_gradients(node, *found, view);
  if (&node == found->of_image) return {{fused.output(0).named(node.name)}};
  if (&node == found->of_filter) return {{fused.output(2).named(node.name)}};
  const auto inputs = each_of<FusedGradientInputs>(unpack<FusedGradientInputs>(node), view.mapping());
  return gradients_of_sums(node, {.x = inputs.x,
                                  .scale = inputs.scale,
                                  .mean = inputs.mean,
                                  .variance = inputs.variance,
                                  .dy = fused.output(0),
                                  .sums = fused.output(1)});
}

bool is_fused_convolution(const Node& node) {
  if (node.op != &conv2d_op()) return false;
  const ConvolutionInputs<Tensor> inputs = unpack<ConvolutionInputs>(node);
  return depthwise_is_fused(resolve_convolution(node.attributes, inputs.image.type(), inputs.filter.type()));
}

// The normalisation of a convolution's result, or null.
const Node* normalisation_after(const Node& convolution, const RewriteView& view) {
  for (const Node* reader : view.readers(result_of(convolution)))
    if (reader->op == &batch_norm_activation_op() &&
        unpack<ForwardInputs>(*reader).x == result_of(convolution) &&
        !unpack<ForwardInputs>(*reader).residual.defined())
      return reader;
  return nullptr;
}

// The convolution that becomes one node with this normalisation, or null.
const Node* convolution_after(const Node& normalisation, const RewriteView& view) {
  const Tensor image = result_of(normalisation);
  if (normalisation.op != &batch_norm_activation_op() || !normalised_from(image) || view.uses(image) != 1)
    return nullptr;
  const auto readers = view.readers(image);
  if (readers.size() != 1 || !is_fused_convolution(*readers[0]) ||
      unpack<ConvolutionInputs>(*readers[0]).image != image || !normalisation_after(*readers[0], view))
    return nullptr;
  return readers[0];
}

// At a normalisation: before such a convolution, behind one, or both.
std::optional<std::vector<Tensor>> divide_normalisation(const Node& node, const RewriteView& view) {
  const ForwardInputs<Tensor> inputs = each_of<ForwardInputs>(unpack<ForwardInputs>(node), view.mapping());
  Node& made = *inputs.x.node();
  const bool is_behind =
      made.op == &depthwise_of_normalised_op() && inputs.x.index() == 0 && !inputs.residual.defined();
  const bool is_before = convolution_after(node, view) != nullptr;
  if (!is_behind && !is_before) return std::nullopt;
  Tensor mean, variance;
  if (is_behind) {
    mean = made.output(1);
    variance = made.output(2);
  } else {
    Node& statistics = make_node(batch_norm_statistics_op(), {inputs.x}, {}, node.where);
    mean = statistics.output(0);
    variance = statistics.output(1);
  }
  // x: of the type of what the convolution alone reads, and makes of it
  if (is_before) return {{inputs.x, mean, variance}};
  Node& fresh = make_packed_node<StatisticsInputs>(
      batch_norm_activation_again_op(),
      {.x = inputs.x, .scale = inputs.scale, .offset = inputs.offset, .mean = mean, .variance = variance},
      node.attributes, node.where);
  return {{fresh.output(0).named(node.name), mean, variance}};
}

std::optional<std::vector<Tensor>> convolve_what_is_normalised(const Node& node, const RewriteView& view) {
  const auto [image, filter, bias] = unpack<ConvolutionInputs>(node);
  const Node& before = *image.node();
  if (convolution_after(before, view) != &node) return std::nullopt;
  const auto inputs = each_of<StatisticsInputs>(*normalised_from(image), view.mapping());
  Node& fresh =
      make_packed_node<DepthwiseOfNormalisedInputs>(depthwise_of_normalised_op(),
                                                    {.filter = view.mapped(filter),
                                                     .x = inputs.x,
                                                     .scale = inputs.scale,
                                                     .offset = inputs.offset,
                                                     .mean = inputs.mean,
                                                     .variance = inputs.variance},
                                                    joined(node.attributes, before.attributes), node.where);
  return {{fresh.output(0).named(node.name)}};
}

}  // namespace

NamedRule depthwise_gradients_rule() {
  return {"gradients of a depthwise convolution behind a batch_norm", fuse_gradients_of_depthwise,
          [](const Node& node) { return node.op == &conv2d_input_gradient_op(); }};
}

NamedRule depthwise_of_normalised_rule() {
  return {"depthwise convolution of a batch_norm",
          [](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
            if (node.op == &batch_norm_activation_op()) return divide_normalisation(node, view);
            if (node.op == &conv2d_op()) return convolve_what_is_normalised(node, view);
            return std::nullopt;
          },
          is_fused_convolution};
}

}  // namespace mox
