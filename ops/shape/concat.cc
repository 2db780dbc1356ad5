#include <fmt/format.h>

#include "ops/shape/internal/box_copy.h"
#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::vector<TensorType> infer_concat(const OpCall& call) {
  call.require(!call.inputs.empty(), "at least one input");
  const int rank = call.shape(0).rank();
  const int axis = internal::checked_axis(call, call.attributes.get<int64_t>("axis"), rank);
  std::vector<int64_t> dims = internal::dims_of(call.shape(0));
  for (int i = 1; i < static_cast<int>(call.inputs.size()); ++i) {
    call.require(call.dtype(i) == call.dtype(0), "inputs of one dtype");
    bool agrees = call.shape(i).rank() == rank;
    for (int d = 0; agrees && d < rank; ++d) agrees = d == axis || call.shape(i)[d] == call.shape(0)[d];
    call.require(agrees, fmt::format("inputs whose shapes differ on axis {} alone", axis));
    call.require(!__builtin_add_overflow(dims[axis], call.shape(i)[axis], &dims[axis]),
                 "inputs whose extents along the axis add up to 64 bits");
  }
  return {{call.dtype(0), Shape(std::move(dims))}};
}

std::vector<Tensor> concat_gradient(const GradientCall& call) {
  const int64_t axis = call.node.attributes.get<int64_t>("axis");
  std::vector<int64_t> sizes;
  for (const Tensor& input : call.node.inputs)
    sizes.push_back(input.shape()[input.shape().normalized_axis(axis)]);
  return split_sizes(call.gradient(), std::move(sizes), axis);
}

Kernel compile_concat(const KernelRequest& request) {
  const Node& node = request.node;
  if (node.inputs.size() == 1) return alias_kernel(node);
  const TensorType& result = node.outputs[0];
  const size_t axis = result.shape.normalized_axis(node.attributes.get<int64_t>("axis"));
  std::vector<internal::BoxCopy> copies;
  const std::vector<int64_t> origin(result.shape.rank(), 0);
  std::vector<int64_t> at = origin;
  for (const Tensor& input : node.inputs) {
    copies.emplace_back(internal::dims_of(input.shape()), input.shape(), origin, result.shape, at,
                        size_of(result.dtype));
    at[axis] += input.shape()[axis];
  }
  return plain_kernel(
      node,
      [copies = std::move(copies)](const KernelArguments& args) {
        for (size_t i = 0; i < copies.size(); ++i) copies[i].run(args.inputs[i], args.outputs[0], args.team);
      },
      "copy");
}

const Op kConcat{
    .name = "concat", .infer = infer_concat, .gradient = concat_gradient, .compile = compile_concat};

}  // namespace

Tensor concat(std::vector<Tensor> inputs, int64_t axis, SourceLocation where) {
  return make_node(kConcat, std::move(inputs), {{"axis", axis}}, where).output();
}

}  // namespace mox
