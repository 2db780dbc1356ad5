// What the reduce_* ops share: attributes "axes" (normalised, sorted) and "keep_dims", shape rule, kernel.
#pragma once

#include <functional>
#include <vector>

#include "ops/reduction/reduction.h"
#include "ops/support/reduction.h"
#include "runtime/graph/op.h"

namespace mox {

// Checks and sorts the axes; throws InvalidArgument naming `op` and `where`.
Tensor make_reduction(const Op& op, const Tensor& x, const ReduceOptions& options, SourceLocation where);

// Types of the result; refuses other dtypes than float32 (and int32, int64).
std::vector<TensorType> infer_numeric_reduction(const OpCall& call);
std::vector<TensorType> infer_floating_reduction(const OpCall& call);
// Also refuses to reduce nothing.
std::vector<TensorType> infer_extreme_reduction(const OpCall& call);

std::function<Kernel(const KernelRequest&)> compile_reduction(Reduction reduction);

// `value`, of the type of the node's result, under the shape that the result has with keep_dims: it
// broadcasts to the shape of the input.
Tensor with_kept_axes(const Node& node, const Tensor& value);

// The gradient of the extremes: shared equally by all elements that are equal to the
// result (as in TensorFlow).
std::vector<Tensor> extreme_gradient(const GradientCall& call);

}  // namespace mox
