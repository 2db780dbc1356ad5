#include "ops/pooling/internal/pooling.h"
#include "ops/pooling/pooling.h"

namespace mox {
namespace {

std::vector<TensorType> infer_avg_pool(const OpCall& call) { return {check_pooling(call, call.type(0))}; }

std::vector<Tensor> gradient_of_avg_pool(const GradientCall& call) {
  return {avg_pool_gradient(call.input(0).shape(), call.gradient(), pooling_options(call.node.attributes))};
}

Kernel compile_avg_pool(const KernelRequest& request) {
  const Node& node = request.node;
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  const TensorType& x = node.inputs[0].type();
  const Layout layout = request.input_layouts[0].is_opaque() ? Layout::plain(x) : request.input_layouts[0];
  const auto description = onednn::describe_pooling(
      node.attributes, x, node.outputs[0], onednn::descriptor_of(x, layout),
      onednn::average_algorithm(node.attributes), dnnl::prop_kind::forward_inference);
  return onednn::primitive_kernel(node, description,
                                  {onednn::primitive_input(DNNL_ARG_SRC, 0, description.src_desc()),
                                   onednn::primitive_output(DNNL_ARG_DST, 0, description.dst_desc())});
}

const Op kAvgPool{.name = "avg_pool",
                  .infer = infer_avg_pool,
                  .gradient = gradient_of_avg_pool,
                  .compile = compile_avg_pool};

}  // namespace

Tensor avg_pool(const Tensor& x, const Pool2dOptions& options, SourceLocation where) {
  return make_tensor(kAvgPool, {x}, pooling_attributes(options), where);
}

Tensor global_avg_pool(const Tensor& x, SourceLocation where) {
  return avg_pool(x, whole_image(x, "global_avg_pool", where), where);
}

}  // namespace mox
