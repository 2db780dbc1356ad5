#include <fmt/format.h>

#include "ops/normalisation/batch_norm_kernel.h"
#include "ops/normalisation/internal/batch_norm_onednn.h"
#include "ops/normalisation/normalisation.h"
#include "ops/support/fusable_ops.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

std::vector<TensorType> infer_batch_norm_gradient(const OpCall& call) {
  check_batch_norm(call, {1, 2, 3});
  call.require(call.type(4) == call.type(0), "dy of x's type");
  return {call.type(0), call.type(1), call.type(1)};
}

std::vector<Tensor> gradient_of_batch_norm_gradient(const GradientCall& call) {
  throw InvalidArgument(
      fmt::format("{}: batch_norm is differentiable once, but a second derivative was asked for. Normalise "
                  "with public ops "
                  "(reduce_mean, rsqrt) where the loss depends on a gradient (made at {}).",
                  call.node.name, to_string(call.node.where)));
}

// dy is taken in the layout of x, and dx comes out in it. Images in blocks of channels or with channels last;
// a matrix is oneDNN's.
Kernel compile_batch_norm_gradient(const KernelRequest& request) {
  const Node& node = request.node;
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  const double epsilon = node.attributes.get<double>("epsilon");
  if (node.inputs[0].shape().rank() == 4)
    return normalisation::backward_kernel(request, {.epsilon = epsilon, .mean = 2, .variance = 3, .dy = 4});
  const onednn::BatchNormDescriptors d(node.inputs[0].type(), request.input_layouts[0]);
  const auto description = onednn::describe_normalisation_gradient(
      onednn::describe_batch_norm(d, epsilon, true), d.x, static_cast<float>(epsilon), d.flags);
  auto x = onednn::primitive_input(DNNL_ARG_SRC, 0, d.x);
  auto dy = onednn::primitive_input(DNNL_ARG_DIFF_DST, 4, d.x);
  auto dx = onednn::primitive_output(DNNL_ARG_DIFF_SRC, 0, d.x);
  x.layout = dy.layout = dx.layout = d.layout;
  // oneDNN asks for the offset too, though no gradient depends on it: any memory of its size will do.
  return onednn::primitive_kernel(node, description,
                                  {x, onednn::primitive_input(DNNL_ARG_SCALE, 1, d.per_channel),
                                   onednn::primitive_input(DNNL_ARG_SHIFT, 1, d.per_channel),
                                   onednn::primitive_input(DNNL_ARG_MEAN, 2, d.per_channel),
                                   onednn::primitive_input(DNNL_ARG_VARIANCE, 3, d.per_channel), dy, dx,
                                   onednn::primitive_output(DNNL_ARG_DIFF_SCALE, 1, d.per_channel),
                                   onednn::primitive_output(DNNL_ARG_DIFF_SHIFT, 2, d.per_channel)});
}

}  // namespace

const Op& batch_norm_gradient_op() {
  static const Op op{.name = "batch_norm_gradient",
                     .infer = infer_batch_norm_gradient,
                     .gradient = gradient_of_batch_norm_gradient,
                     .compile = compile_batch_norm_gradient};
  return op;
}

BatchNormGradients batch_norm_gradient(const Tensor& x, const Tensor& scale, const Tensor& mean,
                                       const Tensor& variance, const Tensor& dy,
                                       const NormalisationOptions& options, SourceLocation where) {
  Node& node = make_node(batch_norm_gradient_op(), {x, scale, mean, variance, dy},
                         {{"epsilon", options.epsilon}}, where);
  return {node.output(0), node.output(1), node.output(2)};
}

}  // namespace mox
