#include "ops/arithmetic/arithmetic.h"
#include "ops/normalisation/batch_norm_kernel.h"
#include "ops/normalisation/internal/any_rank.h"
#include "ops/normalisation/internal/batch_norm_onednn.h"
#include "ops/normalisation/normalisation.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

std::vector<TensorType> infer_batch_norm(const OpCall& call) {
  check_batch_norm(call, {1, 2});
  return {call.type(0), call.type(1), call.type(1)};
}

std::vector<Tensor> gradient_of_batch_norm(const GradientCall& call) {
  const Tensor &x = call.input(0), &scale = call.input(1);
  const Tensor mean = call.output(1), variance = call.output(2);
  Tensor dx, dscale, doffset;
  if (call.output_gradients[0].defined()) {
    const BatchNormGradients gradients =
        batch_norm_gradient(x, scale, mean, variance, call.gradient(0), {.epsilon = epsilon_of(call.node)});
    dx = gradients.x;
    dscale = gradients.scale;
    doffset = gradients.offset;
  }
  // A loss may also depend on the statistics: d mean / dx = 1 / values, d variance / dx = 2 (x
  // - mean) / values.
  auto add_to_dx = [&](const Tensor& more) { dx = dx.defined() ? add(dx, more) : more; };
  const int64_t values = x.shape().elements() / std::max<int64_t>(1, x.shape()[1]);
  const float share = values > 0 ? 1.0f / values : 0.0f;
  if (call.output_gradients[1].defined()) add_to_dx(bias_broadcast(mul(call.gradient(1), share), x.shape()));
  if (call.output_gradients[2].defined())
    add_to_dx(mul(sub(x, bias_broadcast(mean, x.shape())),
                  bias_broadcast(mul(call.gradient(2), 2.0f * share), x.shape())));
  return {dx, dscale, doffset};
}

// Images keep their layout if it is one in blocks of channels, or has channels last.
Kernel compile_batch_norm(const KernelRequest& request) {
  const Node& node = request.node;
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  return normalisation::forward_kernel(
      request, {.epsilon = epsilon_of(node), .inputs = positions<normalisation::ForwardInputs>(node)});
}

}  // namespace

const Op& batch_norm_op() {
  static const Op op{.name = "batch_norm",
                     .infer = infer_batch_norm,
                     .gradient = gradient_of_batch_norm,
                     .compile = compile_batch_norm};
  return op;
}

BatchNormResult batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                           const NormalisationOptions& options, SourceLocation where) {
  const Tensor image = normalisation::as_image(x, where);
  Node& node = make_node(batch_norm_op(), {image, scale, offset}, {{"epsilon", options.epsilon}}, where);
  return {normalisation::in_shape_of(x, node.output(0), where), node.output(1), node.output(2)};
}

}  // namespace mox
