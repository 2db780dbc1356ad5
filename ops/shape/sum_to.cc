#include "ops/shape/shape.h"
#include "ops/support/reduction.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

const Op kSumTo{
    .name = "sum_to",
    .infer = [](const OpCall& call) -> std::vector<TensorType> {
      const DType dtype = call.dtype(0);
      call.require(dtype == DType::kFloat32 || dtype == DType::kInt32 || dtype == DType::kInt64,
                   "float32, int32 or int64");
      const Shape shape(call.attributes.get<std::vector<int64_t>>("shape"));
      Shape common;
      call.require(broadcast_shapes(shape, call.shape(0), &common) && common == call.shape(0),
                   "a shape that broadcasts to the input's: aligned at the last axis, extents equal or 1");
      return {{dtype, shape}};
    },
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {broadcast_to(call.gradient(), call.input(0).shape())};
    },
    .compile =
        [](const KernelRequest& request) {
          const Shape &from = request.node.inputs[0].shape(), &to = request.node.outputs[0].shape;
          const int missing = from.rank() - to.rank();
          std::vector<bool> reduced;
          for (int axis = 0; axis < from.rank(); ++axis)
            reduced.push_back(axis < missing || (to[axis - missing] == 1 && from[axis] != 1));
          return reduction_kernel(request.node, Reduction::kSum, reduced);
        },
};

}  // namespace

Tensor sum_to(const Tensor& x, const Shape& shape, SourceLocation where) {
  if (x.defined() && x.shape() == shape) return x;
  return make_tensor(kSumTo, {x}, {{"shape", std::vector<int64_t>(shape.begin(), shape.end())}}, where);
}

}  // namespace mox
