#include "ops/fusion/depthwise_node.h"

#include "ops/convolution/convolution.h"
#include "ops/convolution/depthwise/depthwise.h"
#include "ops/fusion/batch_norm_node.h"

namespace mox {
namespace {

NormalisationBefore normalisation_of(const Attributes& attributes) {
  return {.epsilon = attributes.get<double>("epsilon"), .activation = activation_of(attributes)};
}

template <template <typename> typename Inputs>
ConvolutionGeometry geometry_of_node(const Node& node) {
  const Inputs<Tensor> inputs = unpack<Inputs>(node);
  return resolve_convolution(node.attributes, inputs.x.type(), inputs.filter.type());
}

}  // namespace

const Op& depthwise_of_normalised_op() {
  static const Op op{.name = "depthwise_of_normalised",
                     .infer = [](const OpCall& call) -> std::vector<TensorType> {
                       const auto inputs = unpack<DepthwiseOfNormalisedInputs>(call);
                       const TensorType &channels = inputs.scale.type(),
                                        y = check_convolution(call, inputs.x.type(), inputs.filter.type()).y;
                       return {y, channels, channels};
                     },
                     .gradient = nullptr,
                     .compile =
                         [](const KernelRequest& request) {
                           return depthwise_of_normalised_kernel(
                               request.node, geometry_of_node<DepthwiseOfNormalisedInputs>(request.node),
                               normalisation_of(request.node.attributes), request.team);
                         }};
  return op;
}

const Op& depthwise_normalised_gradients_op() {
  static const Op op{.name = "depthwise_normalised_gradients",
                     .infer = [](const OpCall& call) -> std::vector<TensorType> {
                       const auto inputs = unpack<DepthwiseGradientsInputs>(call);
                       const TensorType& x = inputs.x.type();
                       return {x, {DType::kFloat32, {x.shape[0], 2, x.shape[1]}}, inputs.filter.type()};
                     },
                     .gradient = nullptr,
                     .compile =
                         [](const KernelRequest& request) {
                           return depthwise_normalised_gradients_kernel(
                               request.node, geometry_of_node<DepthwiseGradientsInputs>(request.node),
                               normalisation_of(request.node.attributes), request.team);
                         }};
  return op;
}

}  // namespace mox
