#include "ops/softmax.h"

#include "ops/internal/shape_rules.h"
#include "ops/internal/softmax_kernels.h"
#include "ops/softmax_backward.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

int64_t axis_of(const Node& node) { return node.attributes.get<int64_t>("axis"); }

std::vector<TensorType> infer(const OpCall& call) {
  internal::require_float32(call, 0, "an input");
  internal::checked_axis(call, call.attributes.get<int64_t>("axis"), call.shape(0).rank());
  return same_as_input(call);
}

Kernel compile(const KernelRequest& request) {
  const Shape& shape = request.node.inputs[0].shape();
  const auto view = internal::axis_view(shape, shape.normalized_axis(axis_of(request.node)));
  return plain_kernel(request.node, [view](const KernelArguments& args) {
    internal::softmax_forward(args.input<float>(0), args.output<float>(0), view, false, args.team);
  });
}

const Op kSoftmax{
    .name = "softmax",
    .infer = infer,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {softmax_backward(call.output(0), call.gradient(), axis_of(call.node))};
    },
    .compile = compile,
};

}  // namespace

Tensor softmax(const Tensor& x, int64_t axis, SourceLocation where) {
  return make_tensor(kSoftmax, {x}, {{"axis", axis}}, where);
}

}  // namespace mox
