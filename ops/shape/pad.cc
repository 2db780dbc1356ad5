#include "ops/shape/internal/box_kernel.h"
#include "ops/shape/internal/fill_value.h"
#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

using Extents = std::vector<int64_t>;

std::vector<TensorType> infer_pad(const OpCall& call) {
  const auto& before = call.attributes.get<Extents>("before");
  const auto& after = call.attributes.get<Extents>("after");
  Extents dims = internal::dims_of(call.shape(0));
  call.require(before.size() == dims.size(), "an amount for every axis");
  for (size_t i = 0; i < dims.size(); ++i) {
    call.require(before[i] >= 0 && after[i] >= 0, "amounts >= 0");
    int64_t extent = 0;
    call.require(!__builtin_add_overflow(before[i], after[i], &extent) &&
                     !__builtin_add_overflow(extent, dims[i], &extent),
                 "amounts whose sum fits 64 bits");
    dims[i] = extent;
  }
  internal::require_representable(call, call.dtype(0), call.attributes.get<double>("value"));
  return {{call.dtype(0), Shape(std::move(dims))}};
}

std::vector<Tensor> pad_gradient(const GradientCall& call) {
  return {slice(call.gradient(), call.node.attributes.get<Extents>("before"),
                internal::dims_of(call.input(0).shape()))};
}

Kernel compile_pad(const KernelRequest& request) {
  const Node& node = request.node;
  const TensorType& source = node.inputs[0].type();
  const TensorType& target = node.outputs[0];
  if (source.shape == target.shape) return alias_kernel(node);
  const Extents extents = internal::dims_of(source.shape);
  return internal::box_kernel(request,
                              {extents, Extents(extents.size(), 0), node.attributes.get<Extents>("before")},
                              internal::FillValue(target, node.attributes.get<double>("value")));
}

const Op kPad{.name = "pad", .infer = infer_pad, .gradient = pad_gradient, .compile = compile_pad};

}  // namespace

Tensor pad(const Tensor& x, const std::vector<PadAmount>& amounts, double value, SourceLocation where) {
  Extents before, after;
  for (const PadAmount& amount : amounts) {
    before.push_back(amount.before);
    after.push_back(amount.after);
  }
  return make_tensor(kPad, {x}, {{"before", before}, {"after", after}, {"value", value}}, where);
}

}  // namespace mox
