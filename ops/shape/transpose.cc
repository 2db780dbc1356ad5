#include <algorithm>
#include <numeric>

#include "ops/shape/internal/permute.h"
#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::vector<int> permutation_of(const Attributes& attributes, int rank) {
  std::vector<int> permutation;
  for (int64_t axis : attributes.get<std::vector<int64_t>>("permutation"))
    permutation.push_back(axis < 0 ? axis + rank : axis);
  return permutation;
}

std::vector<TensorType> infer_transpose(const OpCall& call) {
  const int rank = call.shape(0).rank();
  const auto& given = call.attributes.get<std::vector<int64_t>>("permutation");
  call.require(given.size() == static_cast<size_t>(rank), "a permutation with an entry for every axis");
  internal::checked_axes(call, given, rank);
  std::vector<int64_t> dims;
  for (int axis : permutation_of(call.attributes, rank)) dims.push_back(call.shape(0)[axis]);
  return {{call.dtype(0), Shape(std::move(dims))}};
}

std::vector<Tensor> transpose_gradient(const GradientCall& call) {
  const std::vector<int> permutation = permutation_of(call.node.attributes, call.input(0).shape().rank());
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = i;
  return {transpose(call.gradient(), std::move(inverse))};
}

Kernel compile_transpose(const KernelRequest& request) {
  const TensorType& type = request.node.inputs[0].type();
  const internal::Permute permute(type.shape, permutation_of(request.node.attributes, type.shape.rank()),
                                  size_of(type.dtype));
  if (permute.moves_nothing()) return alias_kernel(request.node);
  return plain_kernel(
      request.node,
      [permute](const KernelArguments& args) { permute.run(args.inputs[0], args.outputs[0], args.team); },
      "tiled loop");
}

const Op kTranspose{.name = "transpose",
                    .infer = infer_transpose,
                    .gradient = transpose_gradient,
                    .compile = compile_transpose};

}  // namespace

Tensor transpose(const Tensor& x, std::vector<int64_t> permutation, SourceLocation where) {
  return make_tensor(kTranspose, {x}, {{"permutation", std::move(permutation)}}, where);
}

Tensor transpose(const Tensor& x, SourceLocation where) {
  std::vector<int64_t> permutation;
  if (x.defined()) {
    permutation.resize(std::max<size_t>(2, x.shape().rank()));
    std::iota(permutation.begin(), permutation.end(), 0);
    std::swap(permutation.end()[-1], permutation.end()[-2]);
  }
  return transpose(x, std::move(permutation), where);
}

}  // namespace mox
