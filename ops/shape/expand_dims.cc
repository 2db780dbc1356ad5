#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

const Op kExpandDims{
    .name = "expand_dims",
    .infer = [](const OpCall& call) -> std::vector<TensorType> {
      const int axis =
          internal::checked_axis(call, call.attributes.get<int64_t>("axis"), call.shape(0).rank() + 1);
      std::vector<int64_t> dims = internal::dims_of(call.shape(0));
      dims.insert(dims.begin() + axis, 1);
      return {{call.dtype(0), Shape(std::move(dims))}};
    },
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {reshape(call.gradient(), internal::dims_of(call.input(0).shape()))};
    },
    .compile = [](const KernelRequest& request) { return alias_kernel(request.node); },
};

}  // namespace

Tensor expand_dims(const Tensor& x, int64_t axis, SourceLocation where) {
  return make_tensor(kExpandDims, {x}, {{"axis", axis}}, where);
}

}  // namespace mox
