#include "ops/reduction/internal/reduce_op.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/arithmetic/arithmetic.h"
#include "ops/comparison/comparison.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

std::vector<bool> reduced_axes(const Node& node) {
  std::vector<bool> reduced(node.inputs[0].shape().rank(), false);
  for (int64_t axis : node.attributes.get<std::vector<int64_t>>("axes")) reduced[axis] = true;
  return reduced;
}

Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keep_dims) {
  std::vector<int64_t> dims;
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      dims.push_back(shape[axis]);
    } else if (keep_dims) {
      dims.push_back(1);
    }
  }
  return Shape(dims);
}

}  // namespace

Tensor make_reduction(const Op& op, const Tensor& x, const ReduceOptions& options, SourceLocation where) {
  internal::require_defined(x, op.name, where);
  std::vector<int64_t> axes = options.axes;
  const int rank = x.shape().rank();
  if (axes.empty())
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank)
      throw InvalidArgument(fmt::format("{} at {}: expected axes in [{}, {}); given {} for {}", op.name,
                                        to_string(where), -rank, rank, axis, to_string(x)));
    if (axis < 0) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
  if (const auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end())
    throw InvalidArgument(fmt::format("{} at {}: expected each axis once; axis {} of {} is given twice",
                                      op.name, to_string(where), *twice, to_string(x)));
  return make_tensor(op, {x}, {{"axes", std::move(axes)}, {"keep_dims", options.keep_dims}}, where);
}

std::vector<TensorType> infer_numeric_reduction(const OpCall& call) {
  const DType dtype = call.dtype(0);
  call.require(dtype == DType::kFloat32 || dtype == DType::kInt32 || dtype == DType::kInt64,
               "float32, int32 or int64 (use cast)");
  return {{dtype, reduced_shape(call.shape(0), call.attributes.get<std::vector<int64_t>>("axes"),
                                call.attributes.get<bool>("keep_dims"))}};
}

std::vector<TensorType> infer_floating_reduction(const OpCall& call) {
  call.require(call.dtype(0) == DType::kFloat32, "float32 (cast integers first)");
  return infer_numeric_reduction(call);
}

std::vector<TensorType> infer_extreme_reduction(const OpCall& call) {
  for (int64_t axis : call.attributes.get<std::vector<int64_t>>("axes"))
    call.require(call.shape(0)[axis] > 0, "at least one element along each axis that is reduced");
  return infer_numeric_reduction(call);
}

std::function<Kernel(const KernelRequest&)> compile_reduction(Reduction reduction) {
  return [reduction](const KernelRequest& request) {
    return reduction_kernel(request.node, reduction, reduced_axes(request.node));
  };
}

Tensor with_kept_axes(const Node& node, const Tensor& value) {
  const Shape kept =
      reduced_shape(node.inputs[0].shape(), node.attributes.get<std::vector<int64_t>>("axes"), true);
  if (kept == value.shape()) return value;
  return reshape(value, {kept.begin(), kept.end()});
}

std::vector<Tensor> extreme_gradient(const GradientCall& call) {
  const Tensor& x = call.input(0);
  const Tensor is_extreme = cast(equal(x, with_kept_axes(call.node, call.output())), x.dtype());
  const Tensor ties = reduce_sum(
      is_extreme, {.axes = call.node.attributes.get<std::vector<int64_t>>("axes"), .keep_dims = true});
  return {is_extreme * (with_kept_axes(call.node, call.gradient()) / ties)};
}

}  // namespace mox
