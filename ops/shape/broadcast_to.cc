#include "ops/elementwise/op.h"
#include "ops/shape/shape.h"

namespace mox {
namespace {

const Op kBroadcastTo{
    .name = "broadcast_to",
    .infer = [](const OpCall& call) -> std::vector<TensorType> {
      const Shape shape(call.attributes.get<std::vector<int64_t>>("shape"));
      Shape common;
      call.require(
          broadcast_shapes(call.shape(0), shape, &common) && common == shape,
          "a shape that the input broadcasts to: aligned at the last axis, extents equal or 1 in the input");
      return {{call.dtype(0), shape}};
    },
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {sum_to(call.gradient(), call.input(0).shape())};
    },
    .compile = elementwise::compile_copy(),
};

}  // namespace

Tensor broadcast_to(const Tensor& x, const Shape& shape, SourceLocation where) {
  if (x.defined() && x.shape() == shape) return x;
  return make_tensor(kBroadcastTo, {x}, {{"shape", std::vector<int64_t>(shape.begin(), shape.end())}}, where);
}

}  // namespace mox
