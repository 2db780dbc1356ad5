#include "ops/fusion/batch_norm_node.h"

#include "ops/normalisation/batch_norm_kernel.h"
#include "ops/processor/onednn.h"

namespace mox {
namespace {

using normalisation::Activation;
using normalisation::ForwardInputs;
using normalisation::FusedGradientInputs;
using normalisation::GradientOptions;
using normalisation::MaskSource;

Kernel compile_forward(const KernelRequest& request) {
  const Attributes& attributes = request.node.attributes;
  return normalisation::forward_kernel(request, {.epsilon = attributes.get<double>("epsilon"),
                                                 .activation = activation_of(attributes),
                                                 .inputs = positions<ForwardInputs>(request.node)});
}

std::vector<TensorType> infer_image_and_two(const OpCall& call) {
  return {call.type(0), call.type(1), call.type(1)};
}

Kernel compile_gradient(const KernelRequest& request) {
  const Attributes& attributes = request.node.attributes;
  GradientOptions options{.epsilon = attributes.get<double>("epsilon"),
                          .activation = activation_of(attributes),
                          .mask = MaskSource::kNormalised,
                          .inputs = positions<FusedGradientInputs>(request.node),
                          .has_dz = attributes.get<bool>("has_dz")};
  if (options.inputs.y.given()) options.mask = MaskSource::kResult;
  return normalisation::gradient_kernel(request, options);
}

}  // namespace

const Op& batch_norm_activation_op() {
  static const Op op{.name = "batch_norm_activation",
                     .infer = infer_image_and_two,
                     .gradient = nullptr,
                     .compile = compile_forward};
  return op;
}

const Op& batch_norm_activation_of_moments_op() {
  static const Op op{.name = "batch_norm_activation_of_moments",
                     .infer = infer_image_and_two,
                     .gradient = nullptr,
                     .compile = compile_forward};
  return op;
}

const Op& batch_norm_activation_gradient_op() {
  static const Op op{.name = "batch_norm_activation_gradient",
                     .infer = [](const OpCall& call) -> std::vector<TensorType> {
                       std::vector<TensorType> types = {call.type(0), call.type(1), call.type(1)};
                       if (call.attributes.get<bool>("has_dz")) types.push_back(call.type(0));
                       return types;
                     },
                     .gradient = nullptr,
                     .compile = compile_gradient};
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

const Op& batch_norm_gradient_of_sums_op() {
  static const Op op{.name = "batch_norm_gradient_of_sums",
                     .infer = infer_image_and_two,
                     .gradient = nullptr,
                     .compile = [](const KernelRequest& request) {
                       return normalisation::gradient_kernel(
                           request, {.epsilon = request.node.attributes.get<double>("epsilon"),
                                     .inputs = positions<FusedGradientInputs>(request.node)});
                     }};
  return op;
}

std::vector<Tensor> gradients_of_sums(const Node& node, const FusedGradientInputs<Tensor>& inputs) {
  const Attributes& attributes = node.attributes;
  Node& gradient = make_packed_node<FusedGradientInputs>(
      batch_norm_gradient_of_sums_op(), inputs, {{"epsilon", attributes.get<double>("epsilon")}}, node.where);
  std::vector<Tensor> results = {gradient.output(0), gradient.output(1), gradient.output(2)};
  if (attributes.get<bool>("has_dz")) results.push_back(inputs.dy);
  return results;
}

const Op& batch_norm_statistics_op() {
  static const Op op{.name = "batch_norm_statistics",
                     .infer = [](const OpCall& call) -> std::vector<TensorType> {
                       const TensorType channels{DType::kFloat32, {call.type(0).shape[1]}};
                       return {channels, channels};
                     },
                     .gradient = nullptr,
                     .compile = normalisation::statistics_kernel};
  return op;
}

Activation activation_of(const Attributes& attributes) {
  return {.clips = true,
          .low = static_cast<float>(attributes.get<double>("low")),
          .high = static_cast<float>(attributes.get<double>("high")),
          .open = attributes.get<bool>("open")};
}

Attributes batch_norm_attributes(double epsilon, const Activation& activation) {
  return {{"epsilon", epsilon},
          {"low", static_cast<double>(activation.low)},
          {"high", static_cast<double>(activation.high)},
          {"open", activation.open}};
}

}  // namespace mox
