#include "ops/fusion/internal/nodes/convolution_of_normalised_node.h"

#include <algorithm>

#include "ops/convolution/convolution.h"
#include "ops/convolution/winograd/fused_inputs.h"
#include "ops/convolution/winograd/of_normalised.h"
#include "ops/convolution/winograd/winograd.h"
#include "ops/normalisation/batch_norm_statistics.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

Kernel compile_statistics(const KernelRequest& request) {
  const Shape& shape = request.node.inputs[0].shape();
  return plain_kernel(request.node, [groups = shape[0], channels = shape[2]](const KernelArguments& args) {
    constexpr int64_t kWidest = normalisation::Slice::kWidest;
    args.team.parallel_for((channels + kWidest - 1) / kWidest, 1, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin * kWidest; first < std::min(end * kWidest, channels); first += kWidest)
        normalisation::combine_moments(args.input<float>(0), groups, channels, first,
                                       std::min(kWidest, channels - first), args.output<float>(0),
                                       args.output<float>(1));
    });
  });
}

std::vector<TensorType> infer_of_normalised(const OpCall& call) {
  const OfNormalisedInputs<Tensor> inputs = unpack<OfNormalisedInputs>(call);
  const TensorType x = inputs.x.type(), y = check_convolution(call, x, inputs.filter.type()).y;
  std::vector<TensorType> types = {
      y, {DType::kFloat32, {call.attributes.get<int64_t>(kGroupsOfPixels), 3, y.shape[1]}}};
  if (call.attributes.get<bool>("has_image")) types.push_back(x);
  return types;
}

Kernel compile_of_normalised(const KernelRequest& request) {
  MOX_ASSERT(!request.hints.has(kDirectConvolutions), "the rule knows of this option");
  const Node& node = request.node;
  const OfNormalisedInputs<Tensor> inputs = unpack<OfNormalisedInputs>(node);
  const ConvolutionGeometry geometry =
      resolve_convolution(node.attributes, inputs.x.type(), inputs.filter.type());
  return winograd_of_normalised_kernel(node, geometry, node.attributes.get<double>("epsilon"), request.team);
}

}  // namespace

const Op& statistics_of_moments_op() {
  static const Op op{.name = "batch_norm_statistics_of_moments",
                     .infer = [](const OpCall& call) -> std::vector<TensorType> {
                       const TensorType channels{DType::kFloat32, {call.type(0).shape[2]}};
                       return {channels, channels};
                     },
                     .gradient = nullptr,
                     .compile = compile_statistics};
  return op;
}

const Op& conv2d_of_normalised_op() {
  static const Op op{.name = "conv2d_of_normalised",
                     .infer = infer_of_normalised,
                     .gradient = nullptr,
                     .compile = compile_of_normalised};
  return op;
}

}  // namespace mox
