#include "ops/shape/shape.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

const Op kStopGradient{
    .name = "stop_gradient",
    .infer = same_as_input,
    .gradient = no_gradient,
    .compile = [](const KernelRequest& request) { return alias_kernel(request.node); },
};

}  // namespace

Tensor stop_gradient(const Tensor& x, SourceLocation where) {
  return make_tensor(kStopGradient, {x}, {}, where);
}

}  // namespace mox
