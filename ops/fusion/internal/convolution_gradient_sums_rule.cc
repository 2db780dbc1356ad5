#include "ops/fusion/internal/convolution_gradient_sums_rule.h"

#include "ops/convolution/winograd/winograd.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/support/fusable_ops.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

// Of a conv2d_input_gradient or what is made of it.
ConvolutionGeometry gradient_geometry_of(const Node& node) {
  return resolve_convolution(node.attributes, node.outputs[0], node.inputs[0].type());
}

std::vector<TensorType> infer_gradient_sums(const OpCall& call) {
  return {call.type(2),
          {DType::kFloat32, {call.attributes.get<int64_t>(kGroupsOfPixels), 2, call.type(2).shape[1]}}};
}

Kernel compile_gradient_sums(const KernelRequest& request) {
  MOX_ASSERT(!request.direct_convolutions, "the rule knows of this option");
  const Node& node = request.node;
  ReluGradientInputs inputs{.epsilon = node.attributes.get<double>("epsilon"),
                            .x = 2,
                            .scale = 3,
                            .offset = 4,
                            .mean = 5,
                            .variance = 6};
  int next = 7;
  if (node.attributes.get<bool>("has_more")) inputs.more = next++;
  if (node.attributes.get<bool>("has_y")) inputs.result = next;
  return winograd_relu_gradient_kernel(node, gradient_geometry_of(node), inputs, request.team);
}

// Whether this gradient of the normalisation's result comes from a convolution that can do more.
bool gives_sums(const Tensor& dy, const RewriteView& view) {
  return dy.node()->op == &conv2d_input_gradient_op() && view.uses(dy) == 1 &&
         winograd_relu_gradient_groups(gradient_geometry_of(*dy.node())) > 0;
}

// At a batch_norm_activation_gradient: both nodes are made anew.
std::optional<std::vector<Tensor>> fuse_gradient_sums(const Node& node, const RewriteView& view) {
  const Attributes& of_normalisation = node.attributes;
  if (node.op != &batch_norm_activation_gradient_op() || !of_normalisation.get<bool>("open") ||
      node.inputs[0].type().dtype != DType::kFloat32)
    return std::nullopt;
  const bool has_more = of_normalisation.get<bool>("has_dy_more"),
             has_y = of_normalisation.get<bool>("has_y");
  constexpr size_t kDy = 5;
  size_t from_convolution = kDy;
  if (has_more && !gives_sums(node.inputs[kDy], view)) from_convolution = kDy + 1;
  if (!gives_sums(node.inputs[from_convolution], view)) return std::nullopt;

  const Node& convolution = *node.inputs[from_convolution].node();
  std::vector<Tensor> inputs;
  for (const Tensor& input : convolution.inputs) inputs.push_back(view.mapped(input));
  for (size_t i = 0; i < kDy; ++i) inputs.push_back(view.mapped(node.inputs[i]));
  if (has_more) inputs.push_back(view.mapped(node.inputs[from_convolution == kDy ? kDy + 1 : kDy]));
  if (has_y) inputs.push_back(view.mapped(node.inputs.back()));
  Attributes attributes = convolution.attributes;
  attributes.set("epsilon", of_normalisation.get<double>("epsilon"));
  attributes.set("has_more", has_more);
  attributes.set("has_y", has_y);
  attributes.set(kGroupsOfPixels, winograd_relu_gradient_groups(gradient_geometry_of(convolution)));
  Node& sums = make_node(conv2d_input_gradient_sums_op(), inputs, std::move(attributes), convolution.where);
  const Tensor &x = inputs[2], &scale = inputs[3], &mean = inputs[5], &variance = inputs[6];
  Node& gradient =
      make_node(batch_norm_gradient_of_sums_op(), {x, scale, mean, variance, sums.output(0), sums.output(1)},
                {{"epsilon", of_normalisation.get<double>("epsilon")}}, node.where);
  std::vector<Tensor> results = {gradient.output(0), gradient.output(1), gradient.output(2)};
  if (of_normalisation.get<bool>("has_dz")) results.push_back(sums.output(0));
  return results;
}

}  // namespace

const Op& conv2d_input_gradient_sums_op() {
  static const Op op{.name = "conv2d_input_gradient_sums",
                     .infer = infer_gradient_sums,
                     .gradient = nullptr,
                     .compile = compile_gradient_sums};
  return op;
}

NamedRule convolution_gradient_sums_rule(bool direct_convolutions) {
  return {
      "sums of a convolution's gradient for its batch_norm",
      [direct_convolutions](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
        if (direct_convolutions) return std::nullopt;
        return fuse_gradient_sums(node, view);
      }};
}

}  // namespace mox
