#include "ops/fusion/internal/direct_convolutions_rule.h"

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/convolution/winograd/rounding.h"
#include "ops/convolution/winograd/winograd.h"
#include "ops/fusion/internal/nodes/bias_node.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

// What a node computes of which convolution.
struct ComputedResult {
  ConvolutionGeometry geometry;
  ConvolutionResult result;
};
std::optional<ComputedResult> computed_by(const Node& node) {
  const auto of = [&](const TensorType& image, const TensorType& filter, ConvolutionResult result) {
    return ComputedResult{resolve_convolution(node.attributes, image, filter), result};
  };
  if (node.op == &conv2d_op() || node.op == &conv2d_bias_op()) {
    const auto inputs = unpack<ConvolutionInputs>(node);
    return of(inputs.image.type(), inputs.filter.type(), ConvolutionResult::kOutput);
  }
  if (node.op == &conv2d_input_gradient_op())
    return of(node.outputs[0], unpack<ImageGradientInputs>(node).filter.type(),
              ConvolutionResult::kInputGradient);
  if (node.op == &conv2d_transpose_op())
    return of(node.outputs[0], unpack<ConvolutionInputs>(node).filter.type(),
              ConvolutionResult::kInputGradient);
  if (node.op == &conv2d_filter_gradient_op())
    return of(unpack<FilterGradientInputs>(node).image.type(), node.outputs[0],
              ConvolutionResult::kFilterGradient);
  return std::nullopt;
}

std::optional<std::vector<Tensor>> mark(const Node& node, const RewriteView& view, double largest_error,
                                        const ConvolutionClasses& classes) {
  const auto computed = computed_by(node);
  if (!computed || !winograd_pays(computed->geometry)) return std::nullopt;
  const auto& [geometry, result] = *computed;
  if (winograd_error(geometry, result) <= largest_error && !classes.contains(class_of(geometry, result)))
    return std::nullopt;
  Node marked = node;
  marked.attributes.set(kSumsDirectly, true);
  std::vector<Tensor> inputs;
  for (const Tensor& input : node.inputs) inputs.push_back(view.mapped(input));
  return {{view.target().copy_node(marked, inputs).output(0)}};
}

}  // namespace

NamedRule direct_convolutions_rule(double largest_error, ConvolutionClasses classes) {
  return {"convolutions that sum directly",
          [largest_error, classes = std::move(classes)](const Node& node, const RewriteView& view) {
            return mark(node, view, largest_error, classes);
          }};
}

}  // namespace mox
