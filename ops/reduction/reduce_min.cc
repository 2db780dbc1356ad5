#include "ops/reduction/internal/reduce_op.h"
#include "ops/reduction/reduction.h"

namespace mox {
namespace {

const Op kReduceMin{
    .name = "reduce_min",
    .infer = infer_extreme_reduction,
    .gradient = extreme_gradient,
    .compile = compile_reduction(Reduction::kMin),
};

}  // namespace

Tensor reduce_min(const Tensor& x, const ReduceOptions& options, SourceLocation where) {
  return make_reduction(kReduceMin, x, options, where);
}

}  // namespace mox
