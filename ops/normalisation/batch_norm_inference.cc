#include "ops/arithmetic/arithmetic.h"
#include "ops/normalisation/internal/any_rank.h"
#include "ops/normalisation/internal/batch_norm_onednn.h"
#include "ops/normalisation/normalisation.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

std::vector<TensorType> infer_batch_norm_inference(const OpCall& call) {
  check_batch_norm(call, {1, 2, 3, 4});
  return same_as_input(call);
}

// With r = 1 / sqrt(variance + epsilon) and n = (x - mean) * r, all linear in dy:
// dx = dy * scale * r, dscale = sum(dy * n), doffset = sum(dy), dmean = -sum(dx), dvariance = -scale * dscale
// * r^2 / 2.
std::vector<Tensor> gradient_of_batch_norm_inference(const GradientCall& call) {
  const Tensor &x = call.input(0), &scale = call.input(1), &mean = call.input(3), &dy = call.gradient();
  const Tensor r = rsqrt(add(call.input(4), static_cast<float>(epsilon_of(call.node))));
  auto spread = [&](const Tensor& per_channel) { return bias_broadcast(per_channel, x.shape()); };
  const Tensor dx = mul(dy, spread(mul(scale, r)));
  const Tensor dscale = bias_add_gradient(mul(dy, mul(sub(x, spread(mean)), spread(r))));
  return {dx, dscale, bias_add_gradient(dy), neg(bias_add_gradient(dx)),
          mul(mul(mul(scale, dscale), mul(r, r)), -0.5f)};
}

Kernel compile_batch_norm_inference(const KernelRequest& request) {
  const Node& node = request.node;
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  const onednn::BatchNormDescriptors d(node.inputs[0].type(), request.input_layouts[0]);
  const auto description = onednn::describe_batch_norm(d, epsilon_of(node));
  auto x = onednn::primitive_input(DNNL_ARG_SRC, 0, d.x);
  auto y = onednn::primitive_output(DNNL_ARG_DST, 0, d.x);
  x.layout = y.layout = d.layout;
  return onednn::primitive_kernel(node, description,
                                  {x, onednn::primitive_input(DNNL_ARG_SCALE, 1, d.per_channel),
                                   onednn::primitive_input(DNNL_ARG_SHIFT, 2, d.per_channel),
                                   onednn::primitive_input(DNNL_ARG_MEAN, 3, d.per_channel),
                                   onednn::primitive_input(DNNL_ARG_VARIANCE, 4, d.per_channel), y});
}

}  // namespace

const Op& batch_norm_inference_op() {
  static const Op op{.name = "batch_norm_inference",
                     .infer = infer_batch_norm_inference,
                     .gradient = gradient_of_batch_norm_inference,
                     .compile = compile_batch_norm_inference};
  return op;
}

Tensor batch_norm_inference(const Tensor& x, const Tensor& scale, const Tensor& offset, const Tensor& mean,
                            const Tensor& variance, const NormalisationOptions& options,
                            SourceLocation where) {
  const Tensor image = normalisation::as_image(x, where);
  const Tensor y = make_tensor(batch_norm_inference_op(), {image, scale, offset, mean, variance},
                               {{"epsilon", options.epsilon}}, where);
  return normalisation::in_shape_of(x, y, where);
}

}  // namespace mox
