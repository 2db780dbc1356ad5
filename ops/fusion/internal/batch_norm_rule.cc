#include "ops/fusion/internal/batch_norm_rule.h"

#include <algorithm>
#include <any>
#include <limits>

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/processor/onednn.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

using normalisation::Activation;
using normalisation::ForwardInputs;
using normalisation::FusedGradientInputs;
using normalisation::GradientInputs;
using normalisation::StatisticsInputs;

// The one node that reads `tensor`, or null.
const Node* only_reader(const Tensor& tensor, const RewriteView& view) {
  if (view.uses(tensor) != 1) return nullptr;
  const auto readers = view.readers(tensor);
  return readers.size() == 1 ? readers[0] : nullptr;  // none: a value that the plan returns
}

// Whether nothing reads `tensor` but `node` and nodes of `op`.
bool only_read_by(const Tensor& tensor, const Node& node, const Op& op, const RewriteView& view) {
  const auto readers = view.readers(tensor);
  return static_cast<int>(readers.size()) == view.uses(tensor) &&
         std::all_of(readers.begin(), readers.end(),
                     [&](const Node* reader) { return reader == &node || reader->op == &op; });
}

Tensor output_of(const Node& node, int i = 0) { return Tensor(const_cast<Node*>(&node), i); }

bool is_number(const Tensor& tensor, double value) {
  return tensor.node()->op->kind == Op::Kind::kConstant && tensor.shape().elements() == 1 &&
         tensor.dtype() == DType::kFloat32 && tensor.node()->attributes.get<Array>("value").item() == value;
}

// What follows a normalisation.
struct Pattern {
  const Node* activation = nullptr;  // the relu or clip_by_value
  Tensor residual;                   // what is added before it, if anything
  Activation what;
};

std::optional<Pattern> relu_after(const Node& normalisation, const Tensor& y, const RewriteView& view) {
  const Node* next = only_reader(y, view);
  if (!next) return std::nullopt;
  Pattern pattern;
  pattern.what = {.clips = true, .low = 0, .high = std::numeric_limits<float>::infinity(), .open = true};
  if (next->op == &add_op()) {
    pattern.residual = next->inputs[next->inputs[0] == y ? 1 : 0];
    if (pattern.residual.type() != y.type() || pattern.residual.node()->id > normalisation.id)
      return std::nullopt;
    next = only_reader(output_of(*next), view);
  }
  if (!next || next->op != &relu_op()) return std::nullopt;
  pattern.activation = next;
  return pattern;
}

// clip_by_value(y), and besides only comparisons of y, which are its gradient.
std::optional<Pattern> clip_after(const Tensor& y, const RewriteView& view) {
  Pattern pattern;
  for (const Node* reader : view.readers(y)) {
    if (reader->op == &clip_by_value_op() && !pattern.activation) {
      pattern.activation = reader;
    } else if (reader->op != &greater_equal_op() && reader->op != &less_equal_op()) {
      return std::nullopt;
    }
  }
  if (!pattern.activation) return std::nullopt;
  const Attributes& attributes = pattern.activation->attributes;
  pattern.what = {.clips = true,
                  .low = static_cast<float>(attributes.get<double>("low")),
                  .high = static_cast<float>(attributes.get<double>("high")),
                  .open = false};
  // The room for more channels that a layout may have holds zeros, which others rely on.
  if (pattern.what.low > 0 || pattern.what.high < 0) return std::nullopt;
  return pattern;
}

std::optional<Pattern> pattern_after(const Node& node, const RewriteView& view) {
  if (node.op != &batch_norm_op() || unpack<ForwardInputs>(node).x.shape().rank() != 4 ||
      onednn::has_empty_value(node))
    return std::nullopt;
  const Tensor y = output_of(node);
  if (auto found = relu_after(node, y, view)) return found;
  return clip_after(y, view);
}

// The fused node stands beside the normalisation, and takes over its statistics; the activation takes the
// fused node's result. The normalisation itself is dropped, unless something still reads y.
std::optional<std::vector<Tensor>> fuse_normalisation(const Node& node, const RewriteView& view) {
  const std::optional<Pattern> pattern = pattern_after(node, view);
  if (!pattern) return std::nullopt;
  ForwardInputs<Tensor> inputs = unpack<ForwardInputs>(node);
  inputs.residual = pattern->residual;
  inputs = each_of<ForwardInputs>(inputs, view.mapping());
  Node& plain = view.target().copy_node(node, {inputs.x, inputs.scale, inputs.offset});
  Node& fused = make_packed_node<ForwardInputs>(
      batch_norm_activation_op(), inputs,
      batch_norm_attributes(node.attributes.get<double>("epsilon"), pattern->what), node.where);
  return {{plain.output(0), fused.output(1), fused.output(2)}};
}

std::optional<std::vector<Tensor>> take_fused_result(const Node& node, const RewriteView& view) {
  std::vector<Tensor> candidates = {node.inputs[0]};
  if (node.inputs[0].node()->op == &add_op()) candidates = node.inputs[0].node()->inputs;
  for (const Tensor& y : candidates) {
    if (y.index() != 0) continue;
    const std::optional<Pattern> pattern = pattern_after(*y.node(), view);
    if (!pattern || pattern->activation != &node) continue;
    return {{view.mapped(output_of(*y.node(), 1)).node()->output(0).named(node.name)}};
  }
  return std::nullopt;
}

std::optional<std::vector<Tensor>> fuse_forward(const Node& node, const RewriteView& view) {
  if (node.op == &batch_norm_op()) return fuse_normalisation(node, view);
  if (node.op == &relu_op() || node.op == &clip_by_value_op()) return take_fused_result(node, view);
  return std::nullopt;
}

bool compares(const Tensor& condition, const Op& op, const Tensor& value, double border) {
  const Node& node = *condition.node();
  return node.op == &op && node.inputs[0] == value && is_number(node.inputs[1], border);
}

// Whether `condition` says where the activation of `fused` (a batch_norm_activation) passes its input on.
bool is_mask_of(const Tensor& condition, const Node& fused) {
  const double low = fused.attributes.get<double>("low"), high = fused.attributes.get<double>("high");
  if (fused.attributes.get<bool>("open")) return compares(condition, greater_op(), output_of(fused), low);
  const Node& both = *condition.node();
  if (both.op != &logical_and_op() || both.inputs[0].node()->op != &greater_equal_op()) return false;
  const Node& at_least = *both.inputs[0].node();
  // Of the plain normalisation, which is there for this comparison alone.
  const Tensor& y = at_least.inputs[0];
  const Node& plain = *y.node();
  if (plain.op != &batch_norm_op()) return false;
  ForwardInputs<Tensor> of_fused = unpack<ForwardInputs>(fused);
  of_fused.residual = {};
  return unpack<ForwardInputs>(plain) == of_fused && compares(both.inputs[0], greater_equal_op(), y, low) &&
         compares(both.inputs[1], less_equal_op(), y, high);
}

// The batch_norm_gradient of a fused normalisation that reads the gradient `dz`, with that
// normalisation; or null.
const Node* gradient_node_of(const Tensor& dz, const Node** fused, const RewriteView& view) {
  for (const Node* reader : view.readers(dz)) {
    if (reader->op != &batch_norm_gradient_op()) continue;
    const GradientInputs<Tensor> read = unpack<GradientInputs>(*reader);
    const Node* forward = read.mean.node();
    if (read.dy != dz || forward->op != &batch_norm_activation_op()) continue;
    const ForwardInputs<Tensor> of_forward = unpack<ForwardInputs>(*forward);
    if (read.mean != output_of(*forward, 1) || read.variance != output_of(*forward, 2) ||
        read.x != of_forward.x || read.scale != of_forward.scale ||
        reader->attributes.get<double>("epsilon") != forward->attributes.get<double>("epsilon"))
      continue;
    *fused = forward;
    return reader;
  }
  return nullptr;
}

// At the choice `select(mask, dr, 0)`.
std::optional<std::vector<Tensor>> fuse_choice(const Node& node, const RewriteView& view) {
  if (!is_number(node.inputs[2], 0) || node.inputs[0].shape() != node.outputs[0].shape ||
      node.inputs[1].type() != node.outputs[0])
    return std::nullopt;
  const Node* fused = nullptr;
  const Tensor dz = output_of(node);
  if (!gradient_node_of(dz, &fused, view) || !is_mask_of(node.inputs[0], *fused)) return std::nullopt;

  const ForwardInputs<Tensor> forward = unpack<ForwardInputs>(*fused);
  FusedGradientInputs<Tensor> inputs{.x = forward.x,
                                     .scale = forward.scale,
                                     .offset = forward.offset,
                                     .mean = output_of(*fused, 1),
                                     .variance = output_of(*fused, 2)};
  const Tensor& dr = node.inputs[1];
  const Node& sum = *dr.node();
  const bool is_sum = sum.op == &add_op() && view.uses(dr) == 1 && sum.inputs[0].type() == dr.type() &&
                      sum.inputs[1].type() == dr.type();
  if (is_sum) {
    inputs.dy = sum.inputs[0];
    inputs.dy_more = sum.inputs[1];
  } else {
    inputs.dy = dr;
  }
  if (forward.residual.defined()) inputs.y = output_of(*fused);
  const bool has_dz = view.uses(dz) > 1;
  Attributes attributes = fused->attributes;
  attributes.set("has_dz", has_dz);
  Node& gradient = make_packed_node<FusedGradientInputs>(batch_norm_activation_gradient_op(),
                                                         each_of<FusedGradientInputs>(inputs, view.mapping()),
                                                         std::move(attributes), node.where);
  return {{gradient.output(has_dz ? 3 : 0)}};  // without dz: dx stands for it, until the next rule
}

// At the batch_norm_gradient, whose place the node made by fuse_choice takes.
std::optional<std::vector<Tensor>> take_fused_gradient(const Node& node, const RewriteView& view) {
  const Tensor dz = unpack<GradientInputs>(node).dy;
  const Node* fused = nullptr;
  if (dz.node()->op != &select_op() || gradient_node_of(dz, &fused, view) != &node) return std::nullopt;
  Node& made = *view.mapped(dz).node();
  if (made.op != &batch_norm_activation_gradient_op()) return std::nullopt;
  return {{made.output(0), made.output(1), made.output(2)}};
}

std::optional<std::vector<Tensor>> fuse_gradient(const Node& node, const RewriteView& view) {
  if (node.op == &select_op()) return fuse_choice(node, view);
  if (node.op == &batch_norm_gradient_op()) return take_fused_gradient(node, view);
  return std::nullopt;
}

bool computes_in_float32(const Node& node, Precision precision) {
  const DType of_compilation = precision == Precision::kBFloat16 ? DType::kBFloat16 : DType::kFloat32;
  return node.traits.compute_dtype.value_or(of_compilation) == DType::kFloat32;
}

// Whether `where` asks for it at this conv2d_filter_gradient.
bool is_recomputed(const Node& to_filter, RecomputedNormalisations where, Precision precision) {
  if (where != RecomputedNormalisations::kCheap) return where == RecomputedNormalisations::kAll;
  if (!computes_in_float32(to_filter, precision)) return false;
  const TensorType image = unpack<FilterGradientInputs>(to_filter).image.type();
  return resolve_convolution(to_filter.attributes, image, to_filter.outputs[0]).floating_point_operations() >=
         kCheapOperations * image.shape.elements();
}

// Whether a normalisation and its activation made it, of one image.
bool is_normalised_alone(const Tensor& image) {
  return image.node()->op == &batch_norm_activation_op() && image.index() == 0 &&
         !unpack<ForwardInputs>(*image.node()).residual.defined();
}

// Whether a node is a conv2d_filter_gradient whose image a normalisation and its activation gave.
bool may_recompute_image(const Node& node, RecomputedNormalisations where, Precision precision) {
  return node.op == &conv2d_filter_gradient_op() &&
         (node.traits.recomputed_stretch != 0 || is_recomputed(node, where, precision)) &&
         is_normalised_alone(unpack<FilterGradientInputs>(node).image);
}

// The image of a conv2d_filter_gradient, if it can be made anew: what a normalisation and its activation
// gave, to convolutions only.
std::optional<Tensor> image_to_recompute(const Node& node, const RewriteView& view,
                                         RecomputedNormalisations where, Precision precision) {
  if (!may_recompute_image(node, where, precision)) return std::nullopt;
  const Tensor image = unpack<FilterGradientInputs>(node).image;
  if (!only_read_by(image, node, conv2d_op(), view)) return std::nullopt;
  return image;
}

// Whether kCheap frees kWorthwhileBytes in all the graph.
bool is_worthwhile(const Graph& graph, const RewriteView& view, Precision precision) {
  size_t freed = 0;
  for (const auto& node : graph.nodes()) {
    if (!view.is_needed(*node) || node->traits.recomputed_stretch != 0) continue;
    if (const auto image = image_to_recompute(*node, view, RecomputedNormalisations::kCheap, precision))
      freed += image->type().bytes();
    if (freed >= kWorthwhileBytes) return true;
  }
  return false;
}

// At a conv2d_filter_gradient, whose image is then made anew.
std::optional<std::vector<Tensor>> recompute_image(const Node& node, const RewriteView& view,
                                                   RecomputedNormalisations where, Precision precision) {
  const std::optional<Tensor> image = image_to_recompute(node, view, where, precision);
  if (!image) return std::nullopt;
  if (where == RecomputedNormalisations::kCheap && node.traits.recomputed_stretch == 0) {
    if (!view.memory().has_value()) view.memory() = is_worthwhile(*node.graph, view, precision);
    if (!std::any_cast<bool>(view.memory())) return std::nullopt;
  }
  const Node& made = *image->node();
  const ForwardInputs<Tensor> forward = unpack<ForwardInputs>(made);
  const StatisticsInputs<Tensor> inputs{.x = forward.x,
                                        .scale = forward.scale,
                                        .offset = forward.offset,
                                        .mean = output_of(made, 1),
                                        .variance = output_of(made, 2)};
  const Tensor again = make_packed_node<StatisticsInputs>(batch_norm_activation_again_op(),
                                                          each_of<StatisticsInputs>(inputs, view.mapping()),
                                                          made.attributes, node.where)
                           .output();
  const Tensor dy = view.mapped(unpack<FilterGradientInputs>(node).dy);
  return {{view.target().copy_node(node, {again, dy}).output()}};
}

// At a batch_norm_gradient, the result of whose convolution is then made anew.
std::optional<std::vector<Tensor>> recompute_convolution(const Node& node, const RewriteView& view,
                                                         RecomputedNormalisations where,
                                                         Precision precision) {
  if (node.op != &batch_norm_gradient_op() || where == RecomputedNormalisations::kNone ||
      node.traits.recomputed_stretch != 0)
    return std::nullopt;
  GradientInputs<Tensor> inputs = unpack<GradientInputs>(node);
  const Tensor result = inputs.x;
  const Node& made = *result.node();
  if (made.op != &conv2d_op() || !computes_in_float32(made, precision) ||
      made.outputs[0].shape.elements() == 0)
    return std::nullopt;
  const ConvolutionInputs<Tensor> convolved = unpack<ConvolutionInputs>(made);
  const ConvolutionGeometry geometry =
      resolve_convolution(made.attributes, convolved.image.type(), convolved.filter.type());
  const double values = made.outputs[0].shape.elements();
  if (geometry.groups != 1 || geometry.floating_point_operations() > kCheapConvolutionOperations * values)
    return std::nullopt;
  // Its image must be there anyway, and not be made again by recompute_image.
  if (is_normalised_alone(convolved.image)) return std::nullopt;
  if (!only_read_by(result, node, batch_norm_op(), view)) return std::nullopt;
  inputs = each_of<GradientInputs>(inputs, view.mapping());
  inputs.x =
      view.target().copy_node(made, {view.mapped(convolved.image), view.mapped(convolved.filter)}).output();
  const Node& copy =
      view.target().copy_node(node, {inputs.x, inputs.scale, inputs.mean, inputs.variance, inputs.dy});
  return {{output_of(copy, 0), output_of(copy, 1), output_of(copy, 2)}};
}

}  // namespace

NamedRule batch_norm_recomputation_rule(RecomputedNormalisations where, Precision precision) {
  return {"batch_norm again for the filter's gradient",
          [where, precision](const Node& node, const RewriteView& view) {
            return recompute_image(node, view, where, precision);
          },
          [where, precision](const Node& node) { return may_recompute_image(node, where, precision); }};
}
NamedRule shortcut_recomputation_rule(RecomputedNormalisations where, Precision precision) {
  return {"convolution again for the normalisation's gradient",
          [where, precision](const Node& node, const RewriteView& view) {
            return recompute_convolution(node, view, where, precision);
          },
          [where](const Node& node) {
            return where != RecomputedNormalisations::kNone && node.op == &batch_norm_gradient_op();
          }};
}
NamedRule batch_norm_activation_rule() {
  return {"batch_norm with activation", fuse_forward,
          [](const Node& node) { return node.op == &batch_norm_op(); }};
}
NamedRule batch_norm_gradient_rule() {
  return {"batch_norm gradient with activation's", fuse_gradient,
          [](const Node& node) { return node.op == &batch_norm_gradient_op(); }};
}

}  // namespace mox
