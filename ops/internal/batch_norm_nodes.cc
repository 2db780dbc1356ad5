#include "ops/internal/batch_norm_nodes.h"

#include "ops/internal/batch_norm_kernel.h"
#include "ops/internal/dnnl.h"

namespace mox {
namespace {

using normalisation::Activation;
using normalisation::BackwardOptions;
using normalisation::MaskSource;

Activation activation_of(const Attributes& attributes) {
  return {.clips = true,
          .low = static_cast<float>(attributes.get<double>("low")),
          .high = static_cast<float>(attributes.get<double>("high")),
          .open = attributes.get<bool>("open")};
}

Kernel compile_forward(const KernelRequest& request) {
  const Attributes& attributes = request.node.attributes;
  return normalisation::forward_kernel(request, attributes.get<double>("epsilon"), activation_of(attributes));
}

Kernel compile_backward(const KernelRequest& request) {
  const Attributes& attributes = request.node.attributes;
  BackwardOptions options{.epsilon = attributes.get<double>("epsilon"),
                          .activation = activation_of(attributes),
                          .mask = MaskSource::kNormalised,
                          .offset = 2,
                          .mean = 3,
                          .variance = 4,
                          .dy = 5,
                          .has_dz = attributes.get<bool>("has_dz")};
  int next = 6;
  if (attributes.get<bool>("has_dy_more")) options.dy_more = next++;
  if (attributes.get<bool>("has_y")) {
    options.y = next;
    options.mask = MaskSource::kResult;
  }
  return normalisation::backward_kernel(request, options);
}

}  // namespace

const Op& batch_norm_activation_op() {
  static const Op op{.name = "batch_norm_activation",
                     .infer = [](const OpCall& call) -> std::vector<TensorType> {
                       return {call.type(0), call.type(1), call.type(1)};
                     },
                     .gradient = nullptr,
                     .compile = compile_forward};
  return op;
}

const Op& batch_norm_activation_backprop_op() {
  static const Op op{.name = "batch_norm_activation_backprop",
                     .infer = [](const OpCall& call) -> std::vector<TensorType> {
                       std::vector<TensorType> types = {call.type(0), call.type(1), call.type(1)};
                       if (call.attributes.get<bool>("has_dz")) types.push_back(call.type(0));
                       return types;
                     },
                     .gradient = nullptr,
                     .compile = compile_backward};
  return op;
}

const Op& batch_norm_activation_again_op() {
  static const Op op{.name = "batch_norm_activation_again",
                     .infer = same_as_input,
                     .gradient = nullptr,
                     .compile = [](const KernelRequest& request) {
                       const Attributes& attributes = request.node.attributes;
                       return normalisation::again_kernel(request, attributes.get<double>("epsilon"),
                                                          activation_of(attributes));
                     }};
  return op;
}

Attributes batch_norm_attributes(double epsilon, const Activation& activation) {
  return {{"epsilon", epsilon},
          {"low", static_cast<double>(activation.low)},
          {"high", static_cast<double>(activation.high)},
          {"open", activation.open}};
}

}  // namespace mox
