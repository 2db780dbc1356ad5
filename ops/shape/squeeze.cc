#include <fmt/format.h>

#include <algorithm>

#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::vector<TensorType> infer_squeeze(const OpCall& call) {
  const auto& named = call.attributes.get<std::vector<int64_t>>("axes");
  const std::vector<int> axes = internal::checked_axes(call, named, call.shape(0).rank());
  std::vector<int64_t> dims;
  for (int axis = 0; axis < call.shape(0).rank(); ++axis) {
    const int64_t extent = call.shape(0)[axis];
    const bool chosen = std::binary_search(axes.begin(), axes.end(), axis);
    if (chosen && extent != 1) call.fail(fmt::format("extent 1 on axis {}", axis));
    if (chosen || (named.empty() && extent == 1)) continue;
    dims.push_back(extent);
  }
  return {{call.dtype(0), Shape(std::move(dims))}};
}

const Op kSqueeze{
    .name = "squeeze",
    .infer = infer_squeeze,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {reshape(call.gradient(), internal::dims_of(call.input(0).shape()))};
    },
    .compile = [](const KernelRequest& request) { return alias_kernel(request.node); },
};

}  // namespace

Tensor squeeze(const Tensor& x, std::vector<int64_t> axes, SourceLocation where) {
  return make_tensor(kSqueeze, {x}, {{"axes", std::move(axes)}}, where);
}

}  // namespace mox
