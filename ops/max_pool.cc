#include "ops/max_pool.h"

#include <algorithm>

#include "ops/internal/fusable_ops.h"
#include "ops/internal/max_pool_workspace.h"
#include "ops/internal/pooling.h"
#include "ops/max_pool_backprop.h"
#include "ops/relu.h"
#include "runtime/graph/graph.h"

namespace mox {
namespace {

constexpr int kWorkspace = 1;  // which element won each window; exists only if a gradient asks for it

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType y = check_pooling(call, call.type(0));
  return {y, {DType::kUInt8, y.shape}};
}

std::vector<Tensor> gradient(const GradientCall& call) {
  return {max_pool_backprop(call.input(0).shape(), call.gradient(), call.output(kWorkspace),
                            pooling_options(call.node.attributes))};
}

bool is_used(const Node& node, int output) {
  const Tensor wanted(const_cast<Node*>(&node), output);
  for (const auto& other : node.graph->nodes())
    if (std::find(other->inputs.begin(), other->inputs.end(), wanted) != other->inputs.end()) return true;
  return false;
}

Kernel compile(const KernelRequest& request) {
  const Node& node = request.node;
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  const TensorType& x = node.inputs[0].type();
  const bool needs_workspace = is_used(node, kWorkspace);
  const Layout layout = request.input_layouts[0].is_opaque() ? Layout::plain(x) : request.input_layouts[0];
  const auto description = onednn::describe_pooling(
      node.attributes, x, node.outputs[0], onednn::descriptor_of(x, layout), dnnl::algorithm::pooling_max,
      needs_workspace ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference);
  std::vector<onednn::PrimitiveArgument> arguments = {
      onednn::primitive_input(DNNL_ARG_SRC, 0, description.src_desc()),
      onednn::primitive_output(DNNL_ARG_DST, 0, description.dst_desc())};
  const Layout workspace =
      needs_workspace ? onednn::workspace_layout(description) : Layout::opaque(0, "none", nullptr);
  if (needs_workspace) {
    arguments.push_back(
        onednn::primitive_output(DNNL_ARG_WORKSPACE, kWorkspace, description.workspace_desc()));
    arguments.back().layout = workspace;
  }
  Kernel kernel = onednn::primitive_kernel(node, description, std::move(arguments));
  kernel.output_layouts[kWorkspace] = workspace;
  return kernel;
}

const Op kMaxPool{.name = "max_pool", .infer = infer, .gradient = gradient, .compile = compile};

}  // namespace

Tensor max_pool(const Tensor& x, const Pool2dOptions& options, SourceLocation where) {
  // relu and the maximum commute: relu after pooling reads and writes a fraction of the memory, forward and
  // backward.
  if (x.defined() && x.node()->op == &relu_op())
    return relu(max_pool(x.node()->inputs[0], options, where), where);
  return make_tensor(kMaxPool, {x}, pooling_attributes(options), where);
}

Tensor global_max_pool(const Tensor& x, SourceLocation where) {
  return max_pool(x, whole_image(x, "global_max_pool", where), where);
}

}  // namespace mox
