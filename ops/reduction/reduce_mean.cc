#include "ops/arithmetic/arithmetic.h"
#include "ops/reduction/internal/reduce_op.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/shape.h"

namespace mox {
namespace {

const Op kReduceMean{
    .name = "reduce_mean",
    .infer = infer_floating_reduction,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      const Shape& shape = call.input(0).shape();
      int64_t count = 1;
      for (int64_t axis : call.node.attributes.get<std::vector<int64_t>>("axes")) count *= shape[axis];
      const Tensor share = call.gradient() * (1.0 / count);
      return {broadcast_to(with_kept_axes(call.node, share), shape)};
    },
    .compile = compile_reduction(Reduction::kMean),
};

}  // namespace

Tensor reduce_mean(const Tensor& x, const ReduceOptions& options, SourceLocation where) {
  return make_reduction(kReduceMean, x, options, where);
}

}  // namespace mox
