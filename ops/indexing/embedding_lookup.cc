#include "ops/indexing/indexing.h"
#include "ops/indexing/internal/gather_kernel.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::vector<TensorType> infer_embedding_lookup(const OpCall& call) {
  call.require(call.shape(0).rank() == 2, "a table [vocabulary, width] as the first input");
  internal::require_float32(call, 0, "a table");
  internal::require_indices(call, 1, "ids");
  std::vector<int64_t> dims = internal::dims_of(call.shape(1));
  dims.push_back(call.shape(0)[1]);
  return {{call.dtype(0), Shape(std::move(dims))}};
}

const Op kEmbeddingLookup{
    .name = "embedding_lookup",
    .infer = infer_embedding_lookup,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {unsorted_segment_sum(call.gradient(), call.input(1), call.input(0).shape()[0]), Tensor()};
    },
    .compile =
        [](const KernelRequest& request) {
          return internal::gather_kernel(request.node, 0, "id", "rows in the table");
        },
};

}  // namespace

Tensor embedding_lookup(const Tensor& table, const Tensor& ids, SourceLocation where) {
  return make_tensor(kEmbeddingLookup, {table, ids}, {}, where);
}

}  // namespace mox
