#include <fmt/format.h>

#include "ops/shape/internal/box_kernel.h"
#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

using Extents = std::vector<int64_t>;

std::vector<TensorType> infer_slice(const OpCall& call) {
  const Shape& shape = call.shape(0);
  const auto& begin = call.attributes.get<Extents>("begin");
  Extents size = call.attributes.get<Extents>("size");
  const size_t rank = shape.rank();
  call.require(begin.size() == rank && size.size() == rank, "a begin and a size for every axis");
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const size_t i = axis;
    if (begin[i] < 0 || begin[i] > shape[axis])
      call.fail(fmt::format("begin in [0, {}] on axis {}, not {}", shape[axis], axis, begin[i]));
    const int64_t rest = shape[axis] - begin[i];
    if (size[i] < -1 || size[i] > rest)
      call.fail(fmt::format("size in [0, {}] (or -1: to the end) on axis {}, not {}", rest, axis, size[i]));
    if (size[i] == -1) size[i] = rest;
  }
  return {{call.dtype(0), Shape(std::move(size))}};
}

std::vector<Tensor> slice_gradient(const GradientCall& call) {
  const auto& begin = call.node.attributes.get<Extents>("begin");
  std::vector<PadAmount> amounts;
  for (size_t i = 0; i < begin.size(); ++i) {
    const int axis = i;
    amounts.push_back({begin[i], call.input(0).shape()[axis] - begin[i] - call.gradient().shape()[axis]});
  }
  return {pad(call.gradient(), amounts)};
}

Kernel compile_slice(const KernelRequest& request) {
  const Node& node = request.node;
  const TensorType& source = node.inputs[0].type();
  const TensorType& target = node.outputs[0];
  if (source.shape == target.shape) return alias_kernel(node);
  const Extents extents = internal::dims_of(target.shape);
  return internal::box_kernel(request,
                              {extents, node.attributes.get<Extents>("begin"), Extents(extents.size(), 0)});
}

const Op kSlice{.name = "slice", .infer = infer_slice, .gradient = slice_gradient, .compile = compile_slice};

}  // namespace

Tensor slice(const Tensor& x, std::vector<int64_t> begin, std::vector<int64_t> size, SourceLocation where) {
  return make_tensor(kSlice, {x}, {{"begin", std::move(begin)}, {"size", std::move(size)}}, where);
}

}  // namespace mox
