#include <algorithm>

#include "ops/activation/activation.h"
#include "ops/pooling/internal/max_pool_nodes.h"
#include "ops/pooling/pooling.h"
#include "ops/support/fusable_ops.h"
#include "runtime/graph/graph.h"

namespace mox {
namespace {

constexpr int kWinner = 1;  // which element won each window; made only if a gradient asks for it

std::vector<TensorType> infer_max_pool(const OpCall& call) {
  const TensorType y = check_pooling(call, call.type(0));
  return {y, winner_type(call.attributes, y.shape)};
}

std::vector<Tensor> gradient_of_max_pool(const GradientCall& call) {
  return {max_pool_gradient(call.input(0).shape(), call.gradient(), call.output(kWinner),
                            pooling_options(call.node.attributes))};
}

bool is_used(const Node& node, int output) {
  const Tensor wanted(const_cast<Node*>(&node), output);
  for (const auto& other : node.graph->nodes())
    if (std::find(other->inputs.begin(), other->inputs.end(), wanted) != other->inputs.end()) return true;
  return false;
}

template <typename Element, typename Winner>
KernelFunction forward(const MaxPooling& pooling, bool with_winner) {
  return [pooling, with_winner](const KernelArguments& arguments) {
    max_pool_forward(pooling, arguments.input<Element>(0), arguments.output<Element>(0),
                     with_winner ? arguments.output<Winner>(kWinner) : nullptr, arguments.team);
  };
}

template <typename Element>
KernelFunction forward(const Node& node, const MaxPooling& pooling, bool with_winner) {
  return has_small_window(node.attributes) ? forward<Element, uint8_t>(pooling, with_winner)
                                           : forward<Element, int32_t>(pooling, with_winner);
}

Kernel compile_max_pool(const KernelRequest& request) {
  const Node& node = request.node;
  const TensorType& x = node.inputs[0].type();
  const FollowedLayout followed = follow_image(x, request.input_layouts[0]);
  const MaxPooling pooling{followed.view, pooling_window(node.attributes, x)};
  const bool with_winner = is_used(node, kWinner);
  Kernel kernel =
      plain_kernel(node, x.dtype == DType::kBFloat16 ? forward<BFloat16>(node, pooling, with_winner)
                                                     : forward<float>(node, pooling, with_winner));
  kernel.input_layouts[0] = followed.layout;
  kernel.output_layouts[0] = layout_in(node.outputs[0], followed);
  kernel.output_layouts[kWinner] =
      with_winner ? layout_in(node.outputs[kWinner], followed) : Layout::opaque(0, "none", nullptr);
  return kernel;
}

const Op kMaxPool{.name = "max_pool",
                  .infer = infer_max_pool,
                  .gradient = gradient_of_max_pool,
                  .compile = compile_max_pool};

}  // namespace

const Op& max_pool_op() { return kMaxPool; }

Tensor max_pool(const Tensor& x, const Pool2dOptions& options, SourceLocation where) {
  // relu and the maximum commute: relu after pooling reads and writes a fraction of the memory, forward and
  // backward. But who takes single pixels makes a shortcut, beside which others read the image after relu:
  // that is made in any case.
  const bool takes_pixels = std::ranges::all_of(options.window, [](int64_t extent) { return extent == 1; });
  if (x.defined() && x.node()->op == &relu_op() && !takes_pixels)
    return relu(max_pool(x.node()->inputs[0], options, where), where);
  return make_tensor(kMaxPool, {x}, pooling_attributes(options), where);
}

Tensor global_max_pool(const Tensor& x, SourceLocation where) {
  return max_pool(x, whole_image(x, "global_max_pool", where), where);
}

}  // namespace mox
