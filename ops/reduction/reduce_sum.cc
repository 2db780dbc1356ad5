#include "ops/reduction/internal/reduce_op.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/shape.h"

namespace mox {
namespace {

const Op kReduceSum{
    .name = "reduce_sum",
    .infer = infer_numeric_reduction,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {broadcast_to(with_kept_axes(call.node, call.gradient()), call.input(0).shape())};
    },
    .compile = compile_reduction(Reduction::kSum),
};

}  // namespace

Tensor reduce_sum(const Tensor& x, const ReduceOptions& options, SourceLocation where) {
  return make_reduction(kReduceSum, x, options, where);
}

}  // namespace mox
