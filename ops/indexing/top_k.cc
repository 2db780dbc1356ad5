#include <fmt/format.h>

#include <algorithm>

#include "ops/indexing/indexing.h"
#include "ops/support/axis_view.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

constexpr int64_t kTopKElementsPerThread = 1 << 13;

std::vector<TensorType> infer_top_k(const OpCall& call) {
  const Shape& shape = call.shape(0);
  call.require(shape.rank() >= 1, "an input with at least one axis");
  call.require(
      call.dtype(0) == DType::kFloat32 || call.dtype(0) == DType::kInt32 || call.dtype(0) == DType::kInt64,
      "an input of dtype float32, int32 or int64");
  const int64_t length = shape[shape.rank() - 1], k = call.attributes.get<int64_t>("k");
  call.require(length <= INT32_MAX, "a last axis shorter than 2^31");
  call.require(k >= 0 && k <= length, fmt::format("k in [0, {}], the extent of the last axis", length));
  std::vector<int64_t> dims = internal::dims_of(shape);
  dims.back() = k;
  return {{call.dtype(0), Shape(dims)}, {DType::kInt32, Shape(dims)}};
}

std::vector<Tensor> top_k_gradient(const GradientCall& call) {
  if (!call.gradient(0).defined()) return {Tensor()};
  const Shape& shape = call.input(0).shape();
  return {scatter_along_last_axis(call.gradient(0), call.output(1), shape[shape.rank() - 1])};
}

// The order of the result: larger values first (NaN before all), then lower indices.
template <typename T>
struct ComesBefore {
  const T* row;
  bool operator()(int32_t a, int32_t b) const {
    const bool a_is_nan = row[a] != row[a], b_is_nan = row[b] != row[b];
    if (a_is_nan || b_is_nan) return a_is_nan && (!b_is_nan || a < b);
    return row[a] > row[b] || (row[a] == row[b] && a < b);
  }
};

// Keeps the best k seen so far in a heap with the worst of them on top, then sorts: O(n log k), in
// the output itself.
template <typename T>
void select_largest(const T* row, int64_t length, int64_t k, T* values, int32_t* indices) {
  const ComesBefore<T> before{row};
  for (int64_t i = 0; i < k; ++i) indices[i] = static_cast<int32_t>(i);
  std::make_heap(indices, indices + k, before);
  for (int64_t i = k; i < length; ++i) {
    if (!before(static_cast<int32_t>(i), indices[0])) continue;
    std::pop_heap(indices, indices + k, before);
    indices[k - 1] = static_cast<int32_t>(i);
    std::push_heap(indices, indices + k, before);
  }
  std::sort_heap(indices, indices + k, before);
  for (int64_t i = 0; i < k; ++i) values[i] = row[indices[i]];
}

template <typename T>
void top_k_of_rows(const KernelArguments& args, int64_t rows, int64_t length, int64_t k) {
  const T* source = args.input<T>(0);
  T* values = args.output<T>(0);
  int32_t* indices = args.output<int32_t>(1);
  args.team.parallel_for(
      rows, std::max<int64_t>(1, kTopKElementsPerThread / length), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          select_largest(source + row * length, length, k, values + row * k, indices + row * k);
      });
}

Kernel compile_top_k(const KernelRequest& request) {
  const TensorType& type = request.node.inputs[0].type();
  const auto view = internal::axis_view(type.shape, type.shape.rank() - 1);
  const int64_t k = request.node.attributes.get<int64_t>("k");
  const DType dtype = type.dtype;
  return plain_kernel(request.node, [view, k, dtype](const KernelArguments& args) {
    if (k == 0) return;
    if (dtype == DType::kFloat32) return top_k_of_rows<float>(args, view.outer, view.extent, k);
    if (dtype == DType::kInt32) return top_k_of_rows<int32_t>(args, view.outer, view.extent, k);
    top_k_of_rows<int64_t>(args, view.outer, view.extent, k);
  });
}

const Op kTopK{.name = "top_k", .infer = infer_top_k, .gradient = top_k_gradient, .compile = compile_top_k};

}  // namespace

TopK top_k(const Tensor& x, int64_t k, SourceLocation where) {
  Node& node = make_node(kTopK, {x}, {{"k", k}}, where);
  return {node.output(0), node.output(1)};
}

}  // namespace mox
