#include "ops/fusion/internal/low_precision_rule.h"

#include <algorithm>
#include <any>
#include <map>

#include "ops/arithmetic/arithmetic.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/convolution/geometry/window.h"
#include "ops/elementwise/kernel.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/fusion/internal/nodes/bias_node.h"
#include "ops/processor/onednn.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

bool is_cast_to(const Node& node, DType dtype) {
  return node.op == &cast_op() && node.outputs[0].dtype == dtype;
}

// Whether a float32 tensor of the new graph is a bfloat16 one, cast.
bool is_widened(const Tensor& fresh) {
  return is_cast_to(*fresh.node(), DType::kFloat32) && fresh.node()->inputs[0].dtype() == DType::kBFloat16;
}

// The casts to bfloat16 of the new graph, each the first of its tensor.
class Casts {
 public:
  Tensor of(const Tensor& fresh) {
    const auto& nodes = fresh.node()->graph->nodes();
    for (; seen_ < nodes.size(); ++seen_)
      if (const Node& node = *nodes[seen_]; is_cast_to(node, DType::kBFloat16))
        of_.try_emplace(key_of(node.inputs[0]), nodes[seen_]->output());
    const auto found = of_.find(key_of(fresh));
    return found == of_.end() ? Tensor() : found->second;
  }

 private:
  static std::pair<int, int> key_of(const Tensor& tensor) { return {tensor.node()->id, tensor.index()}; }

  size_t seen_ = 0;  // so many nodes of the graph, which grows
  std::map<std::pair<int, int>, Tensor> of_;
};

Tensor lowered(const Tensor& fresh, const RewriteView& view) {
  if (is_widened(fresh)) return fresh.node()->inputs[0];
  // One cast for all who need it: of weights, which are read forward and backward.
  if (!view.memory().has_value()) view.memory() = Casts();
  const Tensor known = std::any_cast<Casts&>(view.memory()).of(fresh);
  return known.defined() ? known : cast(fresh, DType::kBFloat16, fresh.where());
}

// A copy of `node` whose inputs and outputs for which `is_low` holds are bfloat16, with these
// outputs cast back.
template <typename InputIsLow, typename OutputIsLow>
std::vector<Tensor> with_low(const Node& node, const RewriteView& view, InputIsLow input_is_low,
                             OutputIsLow output_is_low) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor fresh = view.mapped(node.inputs[i]);
    inputs.push_back(input_is_low(i) ? lowered(fresh, view) : fresh);
  }
  Node typed = node;
  for (size_t i = 0; i < typed.outputs.size(); ++i)
    if (output_is_low(i)) typed.outputs[i].dtype = DType::kBFloat16;
  Node& copy = view.target().copy_node(typed, inputs);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < copy.outputs.size(); ++i) {
    const Tensor output = copy.output(i);
    outputs.push_back(output_is_low(i) ? cast(output, DType::kFloat32, node.where) : output);
  }
  return outputs;
}

bool is_one_of(const Node& node, std::initializer_list<const Op*> ops) {
  return std::find(ops.begin(), ops.end(), node.op) != ops.end();
}

// Whether the window's stride along the rows is longer than they are. oneDNN 2.6 computes the gradient of the
// filter of bfloat16 images from memory that nothing has written there.
bool strides_over_image(const Node& filter_gradient) {
  const int64_t width = unpack<FilterGradientInputs>(filter_gradient).image.shape()[3];
  return filter_gradient.attributes.get<std::vector<int64_t>>("strides")[1] > width;
}

// Whether some rows of the window lie above the image wherever it stands: the same, of many channels.
bool reaches_over_image(const Node& filter_gradient) {
  const Shape image = unpack<FilterGradientInputs>(filter_gradient).image.shape();
  const Shape& filter = filter_gradient.outputs[0].shape;
  const WindowGeometry window =
      resolve_window(filter_gradient.attributes, {image[2], image[3]}, {filter[2], filter[3]});
  return std::max(window[0].before, window[0].after) > image[2];
}

std::optional<std::vector<Tensor>> lower_product(const Node& node, const RewriteView& view) {
  const bool gives_image = is_one_of(node, {&conv2d_op(), &conv2d_bias_op(), &conv2d_input_gradient_op()});
  if (!gives_image && !is_one_of(node, {&conv2d_filter_gradient_op(), &matmul_op(), &matmul_bias_op()}))
    return std::nullopt;
  if (node.op == &conv2d_filter_gradient_op() && (strides_over_image(node) || reaches_over_image(node)))
    return std::nullopt;
  return with_low(
      node, view, [](size_t i) { return i < 2; }, [&](size_t) { return gives_image; });
}

std::optional<std::vector<Tensor>> lower_normalisation(const Node& node, const RewriteView& view) {
  const TensorType& image = node.inputs[0].type();
  if (image.shape.rank() != 4 || !is_widened(view.mapped(node.inputs[0]))) return std::nullopt;
  return with_low(
      node, view, [&](size_t i) { return node.inputs[i].type() == image; },
      [&](size_t i) { return node.outputs[i] == image; });
}

// Of the winners nothing changes.
std::optional<std::vector<Tensor>> lower_max_pooling(const Node& node, const RewriteView& view) {
  if (!is_widened(view.mapped(node.inputs[0]))) return std::nullopt;
  return with_low(
      node, view, [](size_t i) { return i == 0; }, [](size_t i) { return i == 0; });
}

std::optional<std::vector<Tensor>> lower_elementwise(const Node& node, const RewriteView& view) {
  const TensorType& output = node.outputs[0];
  if (node.op == &cast_op() || !elementwise::program_of(node)) return std::nullopt;
  const auto is_image = [&](const Tensor& input) {
    return input.dtype() == DType::kFloat32 && input.shape() == output.shape && output.shape.elements() != 1;
  };
  bool any = false;
  for (const Tensor& input : node.inputs) {
    if (!is_image(input)) continue;
    if (!is_widened(view.mapped(input))) return std::nullopt;
    any = true;
  }
  if (!any) return std::nullopt;
  return with_low(
      node, view, [&](size_t i) { return is_image(node.inputs[i]); },
      [&](size_t) { return output.dtype == DType::kFloat32; });
}

bool computes_in_bfloat16(const Node& node, Precision precision) {
  const DType otherwise = precision == Precision::kBFloat16 ? DType::kBFloat16 : DType::kFloat32;
  return node.traits.compute_dtype.value_or(otherwise) == DType::kBFloat16;
}

std::optional<std::vector<Tensor>> lower(const Node& node, const RewriteView& view, Precision precision) {
  if (!computes_in_bfloat16(node, precision)) return std::nullopt;
  if (node.op->kind != Op::Kind::kCompute || onednn::has_empty_value(node)) return std::nullopt;
  if (auto product = lower_product(node, view)) return product;
  if (is_one_of(node, {&batch_norm_op(), &batch_norm_gradient_op(), &batch_norm_activation_op(),
                       &batch_norm_activation_gradient_op(), &batch_norm_activation_again_op()}))
    return lower_normalisation(node, view);
  if (is_one_of(node, {&max_pool_op(), &max_pool_gradient_op()})) return lower_max_pooling(node, view);
  return lower_elementwise(node, view);
}

}  // namespace

NamedRule low_precision_rule(Precision precision) {
  return {"bfloat16",
          [precision](const Node& node, const RewriteView& view) { return lower(node, view, precision); },
          [precision](const Node& node) { return computes_in_bfloat16(node, precision); }};
}

}  // namespace mox
