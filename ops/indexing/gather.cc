#include <string>

#include "ops/indexing/indexing.h"
#include "ops/indexing/internal/gather_kernel.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

int axis_of(const Node& node) {
  return node.inputs[0].shape().normalized_axis(node.attributes.get<int64_t>("axis"));
}

std::vector<TensorType> infer_gather(const OpCall& call) {
  const int axis = internal::checked_axis(call, call.attributes.get<int64_t>("axis"), call.shape(0).rank());
  internal::require_indices(call, 1, "indices");
  std::vector<int64_t> dims = internal::dims_of(call.shape(0));
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, call.shape(1).begin(), call.shape(1).end());
  return {{call.dtype(0), Shape(std::move(dims))}};
}

std::vector<Tensor> gather_gradient(const GradientCall& call) {
  const int axis = axis_of(call.node);
  return {unsorted_segment_sum(call.gradient(), call.input(1), call.input(0).shape()[axis], axis), Tensor()};
}

Kernel compile_gather(const KernelRequest& request) {
  const int axis = axis_of(request.node);
  return internal::gather_kernel(request.node, axis, "index", "slices on axis " + std::to_string(axis));
}

const Op kGather{
    .name = "gather", .infer = infer_gather, .gradient = gather_gradient, .compile = compile_gather};

}  // namespace

Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis, SourceLocation where) {
  return make_tensor(kGather, {x, indices}, {{"axis", axis}}, where);
}

}  // namespace mox
