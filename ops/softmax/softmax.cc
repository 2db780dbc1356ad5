#include "ops/softmax/softmax.h"

#include "ops/softmax/internal/softmax_kernels.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

const Op kSoftmax{
    .name = "softmax",
    .infer = internal::infer_softmax,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {softmax_gradient(call.output(0), call.gradient(), internal::softmax_axis(call.node))};
    },
    .compile = [](const KernelRequest& request) { return internal::compile_softmax(request, false); },
};

}  // namespace

Tensor softmax(const Tensor& x, int64_t axis, SourceLocation where) {
  return make_tensor(kSoftmax, {x}, {{"axis", axis}}, where);
}

}  // namespace mox
