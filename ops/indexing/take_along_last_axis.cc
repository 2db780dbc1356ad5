#include "ops/indexing/indexing.h"
#include "ops/support/indices.h"
#include "ops/support/row_indices.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

constexpr int64_t kTakeElementsPerThread = 1 << 14;

std::vector<TensorType> infer_take(const OpCall& call) {
  internal::require_row_indices(call);
  std::vector<int64_t> dims = internal::dims_of(call.shape(1));
  return {{call.dtype(0), Shape(std::move(dims))}};
}

std::vector<Tensor> take_gradient(const GradientCall& call) {
  const Shape& shape = call.input(0).shape();
  return {scatter_along_last_axis(call.gradient(), call.input(1), shape[shape.rank() - 1]), Tensor()};
}

template <typename T>
void take(const KernelArguments& args, const internal::IndexReader& indices,
          const internal::RowExtents& extents) {
  const T* source = args.input<T>(0);
  T* target = args.output<T>(0);
  args.team.parallel_for(extents.rows * extents.taken, kTakeElementsPerThread,
                         [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i)
                             target[i] = source[i / extents.taken * extents.length + indices[i]];
                         });
}

Kernel compile_take(const KernelRequest& request) {
  const Node& node = request.node;
  const Shape& shape = node.inputs[0].shape();
  const auto extents = internal::row_extents(node.inputs[1].shape(), shape[shape.rank() - 1]);
  internal::IndexCheck check(node, 1, extents.length, "index", "elements in a row");
  const bool wide = node.inputs[0].dtype() == DType::kInt64;
  return plain_kernel(node, [extents, wide, check = std::move(check)](const KernelArguments& args) {
    const internal::IndexReader indices = check.checked(args);
    return wide ? take<int64_t>(args, indices, extents) : take<int32_t>(args, indices, extents);  // bits only
  });
}

const Op kTake{
    .name = "take_along_last_axis", .infer = infer_take, .gradient = take_gradient, .compile = compile_take};

}  // namespace

Tensor take_along_last_axis(const Tensor& x, const Tensor& indices, SourceLocation where) {
  return make_tensor(kTake, {x, indices}, {}, where);
}

}  // namespace mox
