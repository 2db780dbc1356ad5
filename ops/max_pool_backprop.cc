#include "ops/max_pool_backprop.h"

#include <fmt/format.h>

#include "ops/internal/max_pool_workspace.h"
#include "ops/internal/pooling.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

TensorType image_type(const Attributes& attributes) {
  return {DType::kFloat32, Shape(attributes.get<std::vector<int64_t>>("x_shape"))};
}

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType x = image_type(call.attributes);
  const TensorType y = check_pooling(call, x);
  if (call.type(0) != y) call.fail(fmt::format("dy of the pooling's output type {}", to_string(y)));
  return {x};
}

std::vector<Tensor> gradient(const GradientCall& call) {
  throw InvalidArgument(
      fmt::format("{}: max_pool is differentiable once, but a second derivative was asked for. Use avg_pool, "
                  "or a convolution with "
                  "a stride, where the loss depends on a gradient (made at {}).",
                  call.node.name, to_string(call.node.where)));
}

Kernel compile(const KernelRequest& request) {
  const Node& node = request.node;
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  const Layout& workspace = request.input_layouts[1];
  const auto& forward = onednn::forward_of_workspace(workspace);
  const auto description = onednn::describe_pooling_backward(node.attributes, image_type(node.attributes),
                                                             forward, dnnl::algorithm::pooling_max);
  auto winners = onednn::primitive_input(DNNL_ARG_WORKSPACE, 1, forward.workspace_desc());
  winners.layout = workspace;
  return onednn::primitive_kernel(
      node, description,
      {onednn::primitive_input(DNNL_ARG_DIFF_DST, 0, description.diff_dst_desc()), winners,
       onednn::primitive_output(DNNL_ARG_DIFF_SRC, 0, description.diff_src_desc())});
}

const Op kMaxPoolBackprop{
    .name = "max_pool_backprop", .infer = infer, .gradient = gradient, .compile = compile};

}  // namespace

Tensor max_pool_backprop(const Shape& x_shape, const Tensor& dy, const Tensor& workspace,
                         const Pool2dOptions& options, SourceLocation where) {
  Attributes attributes = pooling_attributes(options);
  attributes.set("x_shape", std::vector<int64_t>(x_shape.begin(), x_shape.end()));
  return make_tensor(kMaxPoolBackprop, {dy, workspace}, std::move(attributes), where);
}

}  // namespace mox
