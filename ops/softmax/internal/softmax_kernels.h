// What softmax and log_softmax along any axis share with each other, and so do their derivatives: ops with an
// attribute "axis" whose inputs and output are float32 tensors of one shape.
#pragma once

#include "ops/reduction/reduction.h"
#include "runtime/graph/op.h"

namespace mox::internal {

int64_t softmax_axis(const Node& node);
// The sum along the axis, which stays as an axis of length 1.
inline Tensor sum_along(const Tensor& x, int64_t axis) {
  return reduce_sum(x, {.axes = {axis}, .keep_dims = true});
}

// The rule of shapes: as the inputs. Fails the call for other dtypes, two types, or an axis
// outside of the shape.
std::vector<TensorType> infer_softmax(const OpCall& call);

// y = softmax(x), or its logarithm, along the axis.
Kernel compile_softmax(const KernelRequest& request, bool logarithm);

// Inputs y, dy. dx for y = softmax(x): y * (dy - sum(y * dy)); for y = log_softmax(x): dy - exp(y) * sum(dy).
Kernel compile_softmax_gradient(const KernelRequest& request, bool logarithm);

}  // namespace mox::internal
