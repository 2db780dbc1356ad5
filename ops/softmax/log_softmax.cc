#include "ops/softmax/internal/softmax_kernels.h"
#include "ops/softmax/softmax.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

const Op kLogSoftmax{
    .name = "log_softmax",
    .infer = internal::infer_softmax,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {log_softmax_gradient(call.output(0), call.gradient(), internal::softmax_axis(call.node))};
    },
    .compile = [](const KernelRequest& request) { return internal::compile_softmax(request, true); },
};

}  // namespace

Tensor log_softmax(const Tensor& x, int64_t axis, SourceLocation where) {
  return make_tensor(kLogSoftmax, {x}, {{"axis", axis}}, where);
}

}  // namespace mox
