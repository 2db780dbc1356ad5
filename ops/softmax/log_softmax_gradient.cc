#include "ops/arithmetic/arithmetic.h"
#include "ops/softmax/internal/softmax_kernels.h"
#include "ops/softmax/softmax.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

// With s = sum(dy): d/d(y) of h . (dy - exp(y) * s) is -h * exp(y) * s; d/d(dy) is h - sum(h * exp(y)).
std::vector<Tensor> gradient_of_log_softmax_gradient(const GradientCall& call) {
  const int64_t axis = internal::softmax_axis(call.node);
  const Tensor &y = call.input(0), &dy = call.input(1), &h = call.gradient();
  const Tensor weighted = mul(h, exp(y));
  return {neg(mul(weighted, internal::sum_along(dy, axis))), sub(h, internal::sum_along(weighted, axis))};
}

const Op kLogSoftmaxGradient{
    .name = "log_softmax_gradient",
    .infer = internal::infer_softmax,
    .gradient = gradient_of_log_softmax_gradient,
    .compile = [](const KernelRequest& request) { return internal::compile_softmax_gradient(request, true); },
};

}  // namespace

Tensor log_softmax_gradient(const Tensor& y, const Tensor& dy, int64_t axis, SourceLocation where) {
  return make_tensor(kLogSoftmaxGradient, {y, dy}, {{"axis", axis}}, where);
}

}  // namespace mox
