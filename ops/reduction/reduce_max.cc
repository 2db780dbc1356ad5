#include "ops/reduction/internal/reduce_op.h"
#include "ops/reduction/reduction.h"

namespace mox {
namespace {

const Op kReduceMax{
    .name = "reduce_max",
    .infer = infer_extreme_reduction,
    .gradient = extreme_gradient,
    .compile = compile_reduction(Reduction::kMax),
};

}  // namespace

Tensor reduce_max(const Tensor& x, const ReduceOptions& options, SourceLocation where) {
  return make_reduction(kReduceMax, x, options, where);
}

}  // namespace mox
