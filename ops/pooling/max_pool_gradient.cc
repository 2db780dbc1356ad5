#include <fmt/format.h>

#include "ops/pooling/internal/max_pool_nodes.h"
#include "ops/pooling/pooling.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

void check_winner(const OpCall& call, const TensorType& y) {
  const TensorType winner = winner_type(call.attributes, y.shape);
  if (call.type(1) != winner) call.fail(fmt::format("the winners of the pooling, {}", to_string(winner)));
}

std::vector<TensorType> infer_max_pool_gradient(const OpCall& call) {
  const TensorType x = forward_image_type(call.attributes);
  const TensorType y = check_pooling(call, x);
  if (call.type(0) != y) call.fail(fmt::format("dy of the pooling's output type {}", to_string(y)));
  check_winner(call, y);
  return {x};
}

std::vector<TensorType> infer_max_pool_gather(const OpCall& call) {
  const TensorType y = check_pooling(call, call.type(0));
  check_winner(call, y);
  return {y};
}

std::vector<Tensor> gradient_of_max_pool_gradient(const GradientCall& call) {
  return {max_pool_gather(call.gradient(), call.input(1), pooling_options(call.node.attributes)), {}};
}

std::vector<Tensor> gradient_of_max_pool_gather(const GradientCall& call) {
  return {max_pool_gradient(call.input(0).shape(), call.gradient(), call.input(1),
                            pooling_options(call.node.attributes)),
          {}};
}

// Everything follows the layout of the winners, which is that of the forward image.
struct MaxPoolLayouts {
  MaxPoolLayouts(const KernelRequest& request, const TensorType& image, const TensorType& pooled) {
    const TensorType& winners = request.node.inputs[1].type();
    const FollowedLayout followed = follow_image(winners, request.input_layouts[1]);
    x = layout_in(image, followed);
    y = layout_in(pooled, followed);
    winner = layout_in(winners, followed);
    ChannelView view = followed.view;
    view.inner = image.shape[2] * image.shape[3];
    pooling = {view, pooling_window(request.node.attributes, image)};
  }
  Layout x, y, winner;
  MaxPooling pooling;
};

template <typename Element, typename Winner>
KernelFunction scatter_to_winners(const MaxPooling& pooling) {
  return [pooling](const KernelArguments& a) {
    max_pool_scatter(pooling, a.input<Element>(0), a.input<Winner>(1), a.output<Element>(0), a.team);
  };
}
template <typename Element>
KernelFunction scatter_to_winners(const Node& node, const MaxPooling& pooling) {
  return has_small_window(node.attributes) ? scatter_to_winners<Element, uint8_t>(pooling)
                                           : scatter_to_winners<Element, int32_t>(pooling);
}
template <typename Winner>
KernelFunction gather_from_winners(const MaxPooling& pooling) {
  return [pooling](const KernelArguments& a) {
    max_pool_gather(pooling, a.input<float>(0), a.input<Winner>(1), a.output<float>(0), a.team);
  };
}

Kernel compile_max_pool_gradient(const KernelRequest& request) {
  const Node& node = request.node;
  const MaxPoolLayouts layouts(request, node.outputs[0], node.inputs[0].type());
  Kernel kernel = plain_kernel(node, node.outputs[0].dtype == DType::kBFloat16
                                         ? scatter_to_winners<BFloat16>(node, layouts.pooling)
                                         : scatter_to_winners<float>(node, layouts.pooling));
  kernel.input_layouts = {layouts.y, layouts.winner};
  kernel.output_layouts = {layouts.x};
  return kernel;
}

Kernel compile_max_pool_gather(const KernelRequest& request) {
  const Node& node = request.node;
  const MaxPoolLayouts layouts(request, node.inputs[0].type(), node.outputs[0]);
  Kernel kernel =
      plain_kernel(node, has_small_window(node.attributes) ? gather_from_winners<uint8_t>(layouts.pooling)
                                                           : gather_from_winners<int32_t>(layouts.pooling));
  kernel.input_layouts = {layouts.x, layouts.winner};
  kernel.output_layouts = {layouts.y};
  return kernel;
}

const Op kMaxPoolGradient{.name = "max_pool_gradient",
                          .infer = infer_max_pool_gradient,
                          .gradient = gradient_of_max_pool_gradient,
                          .compile = compile_max_pool_gradient};
const Op kMaxPoolGather{.name = "max_pool_gather",
                        .infer = infer_max_pool_gather,
                        .gradient = gradient_of_max_pool_gather,
                        .compile = compile_max_pool_gather};

}  // namespace

const Op& max_pool_gradient_op() { return kMaxPoolGradient; }

Tensor max_pool_gradient(const Shape& x_shape, const Tensor& dy, const Tensor& winner,
                         const Pool2dOptions& options, SourceLocation where) {
  Attributes attributes = pooling_attributes(options);
  attributes.set("x_shape", std::vector<int64_t>(x_shape.begin(), x_shape.end()));
  return make_tensor(kMaxPoolGradient, {dy, winner}, std::move(attributes), where);
}

Tensor max_pool_gather(const Tensor& x, const Tensor& winner, const Pool2dOptions& options,
                       SourceLocation where) {
  return make_tensor(kMaxPoolGather, {x, winner}, pooling_attributes(options), where);
}

}  // namespace mox
