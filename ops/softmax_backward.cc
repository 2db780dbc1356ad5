#include "ops/softmax_backward.h"

#include "ops/internal/shape_rules.h"
#include "ops/internal/softmax_kernels.h"
#include "ops/mul.h"
#include "ops/reduce_sum.h"
#include "ops/sub.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

int64_t axis_of(const Node& node) { return node.attributes.get<int64_t>("axis"); }

std::vector<TensorType> infer(const OpCall& call) {
  internal::require_float32(call, 0, "inputs");
  call.require(call.type(0) == call.type(1), "inputs of one type");
  internal::checked_axis(call, call.attributes.get<int64_t>("axis"), call.shape(0).rank());
  return same_as_input(call);
}

Tensor sum_along(const Tensor& x, int64_t axis) { return reduce_sum(x, {.axes = {axis}, .keep_dims = true}); }

// With s = sum(y * dy): d/d(y) of h . (y * (dy - s)) is h * (dy - s) - dy * sum(h * y); d/d(dy) is y * (h -
// sum(y * h)).
std::vector<Tensor> gradient(const GradientCall& call) {
  const int64_t axis = axis_of(call.node);
  const Tensor &y = call.input(0), &dy = call.input(1), &h = call.gradient();
  const Tensor centered = sub(dy, sum_along(mul(y, dy), axis));
  return {sub(mul(h, centered), mul(dy, sum_along(mul(h, y), axis))), softmax_backward(y, h, axis)};
}

Kernel compile(const KernelRequest& request) {
  const Shape& shape = request.node.inputs[0].shape();
  const auto view = internal::axis_view(shape, shape.normalized_axis(axis_of(request.node)));
  return plain_kernel(request.node, [view](const KernelArguments& args) {
    internal::softmax_backward(args.input<float>(0), args.input<float>(1), args.output<float>(0), view, false,
                               args.team);
  });
}

const Op kSoftmaxBackward{
    .name = "softmax_backward", .infer = infer, .gradient = gradient, .compile = compile};

}  // namespace

Tensor softmax_backward(const Tensor& y, const Tensor& dy, int64_t axis, SourceLocation where) {
  return make_tensor(kSoftmaxBackward, {y, dy}, {{"axis", axis}}, where);
}

}  // namespace mox
