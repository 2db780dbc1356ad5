#include "ops/arithmetic/arithmetic.h"
#include "ops/softmax/internal/softmax_kernels.h"
#include "ops/softmax/softmax.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

// With s = sum(y * dy): d/d(y) of h . (y * (dy - s)) is h * (dy - s) - dy * sum(h * y); d/d(dy) is y * (h -
// sum(y * h)).
std::vector<Tensor> gradient_of_softmax_gradient(const GradientCall& call) {
  const int64_t axis = internal::softmax_axis(call.node);
  const Tensor &y = call.input(0), &dy = call.input(1), &h = call.gradient();
  const Tensor centered = sub(dy, internal::sum_along(mul(y, dy), axis));
  return {sub(mul(h, centered), mul(dy, internal::sum_along(mul(h, y), axis))), softmax_gradient(y, h, axis)};
}

const Op kSoftmaxGradient{
    .name = "softmax_gradient",
    .infer = internal::infer_softmax,
    .gradient = gradient_of_softmax_gradient,
    .compile =
        [](const KernelRequest& request) { return internal::compile_softmax_gradient(request, false); },
};

}  // namespace

Tensor softmax_gradient(const Tensor& y, const Tensor& dy, int64_t axis, SourceLocation where) {
  return make_tensor(kSoftmaxGradient, {y, dy}, {{"axis", axis}}, where);
}

}  // namespace mox
