#include <fmt/format.h>

#include "ops/normalisation/batch_norm_kernel.h"
#include "ops/normalisation/internal/any_rank.h"
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
                  "with public ops (reduce_mean, rsqrt) where the loss depends on a gradient (made at {}).",
                  call.node.name, to_string(call.node.where)));
}

// dy is taken in the layout of x, and dx comes out in it.
Kernel compile_batch_norm_gradient(const KernelRequest& request) {
  const Node& node = request.node;
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  const auto inputs = positions<normalisation::GradientInputs>(node);
  return normalisation::gradient_kernel(request, {.epsilon = epsilon_of(node),
                                                  .inputs = {.x = inputs.x,
                                                             .scale = inputs.scale,
                                                             .mean = inputs.mean,
                                                             .variance = inputs.variance,
                                                             .dy = inputs.dy}});
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
  if (x.defined() && dy.defined() && dy.type() != x.type())
    throw InvalidArgument(fmt::format("batch_norm_gradient at {}: expected dy of x's type {}, given {}",
                                      to_string(where), to_string(x.type()), to_string(dy.type())));
  Node& node = make_node(
      batch_norm_gradient_op(),
      {normalisation::as_image(x, where), scale, mean, variance, normalisation::as_image(dy, where)},
      {{"epsilon", options.epsilon}}, where);
  return {normalisation::in_shape_of(x, node.output(0), where), node.output(1), node.output(2)};
}

}  // namespace mox
