#include "ops/shape/shape.h"
#include "ops/support/axis_view.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

const Op kFlatten{
    .name = "flatten",
    .infer = [](const OpCall& call) -> std::vector<TensorType> {
      call.require(call.shape(0).rank() >= 1, "an input with at least one axis (the batch)");
      return {{call.dtype(0), Shape{call.shape(0)[0], internal::axis_view(call.shape(0), 0).inner}}};
    },
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {reshape(call.gradient(), internal::dims_of(call.input(0).shape()))};
    },
    .compile = [](const KernelRequest& request) { return alias_kernel(request.node); },
};

}  // namespace

Tensor flatten(const Tensor& x, SourceLocation where) { return make_tensor(kFlatten, {x}, {}, where); }

}  // namespace mox
