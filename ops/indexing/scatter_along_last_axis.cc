#include <algorithm>

#include "ops/indexing/indexing.h"
#include "ops/support/indices.h"
#include "ops/support/row_indices.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

constexpr int64_t kScatterElementsPerThread = 1 << 14;

std::vector<TensorType> infer_scatter(const OpCall& call) {
  internal::require_row_indices(call);
  call.require(call.shape(0) == call.shape(1), "an index for every element");
  const int64_t length = call.attributes.get<int64_t>("length");
  call.require(length >= 0, "a length >= 0");
  std::vector<int64_t> dims = internal::dims_of(call.shape(0));
  dims.back() = length;
  return {{call.dtype(0), Shape(std::move(dims))}};
}

std::vector<Tensor> scatter_gradient(const GradientCall& call) {
  return {take_along_last_axis(call.gradient(), call.input(1)), Tensor()};
}

template <typename T>
void scatter(const KernelArguments& args, const internal::IndexReader& indices,
             const internal::RowExtents& extents) {
  const T* source = args.input<T>(0);
  T* target = args.output<T>(0);
  const int64_t grain =
      std::max<int64_t>(1, kScatterElementsPerThread / std::max<int64_t>(1, extents.length));
  args.team.parallel_for(extents.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* to = target + row * extents.length;
      std::fill(to, to + extents.length, T{0});
      for (int64_t i = row * extents.taken; i < (row + 1) * extents.taken; ++i) to[indices[i]] += source[i];
    }
  });
}

Kernel compile_scatter(const KernelRequest& request) {
  const Node& node = request.node;
  const auto extents = internal::row_extents(node.inputs[1].shape(), node.attributes.get<int64_t>("length"));
  internal::IndexCheck check(node, 1, extents.length, "index", "elements in a row");
  const DType dtype = node.inputs[0].dtype();
  return plain_kernel(node, [extents, dtype, check = std::move(check)](const KernelArguments& args) {
    const internal::IndexReader indices = check.checked(args);
    if (dtype == DType::kFloat32) return scatter<float>(args, indices, extents);
    if (dtype == DType::kInt32) return scatter<int32_t>(args, indices, extents);
    scatter<int64_t>(args, indices, extents);
  });
}

const Op kScatter{.name = "scatter_along_last_axis",
                  .infer = infer_scatter,
                  .gradient = scatter_gradient,
                  .compile = compile_scatter};

}  // namespace

Tensor scatter_along_last_axis(const Tensor& x, const Tensor& indices, int64_t length, SourceLocation where) {
  return make_tensor(kScatter, {x, indices}, {{"length", length}}, where);
}

}  // namespace mox
