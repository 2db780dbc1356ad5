#include <algorithm>

#include "ops/indexing/indexing.h"
#include "ops/support/indices.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

constexpr int64_t kSegmentSumElementsPerThread = 1 << 14;

std::vector<TensorType> infer_segment_sum(const OpCall& call) {
  const Shape& shape = call.shape(0);
  const Shape& segments = call.shape(1);
  const int64_t axis = call.attributes.get<int64_t>("axis");
  const int64_t count = call.attributes.get<int64_t>("segment_count");
  call.require(
      call.dtype(0) == DType::kFloat32 || call.dtype(0) == DType::kInt32 || call.dtype(0) == DType::kInt64,
      "data of dtype float32, int32 or int64");
  internal::require_indices(call, 1, "segments");
  call.require(count >= 0, "a segment_count >= 0");
  bool contained = axis >= 0 && axis <= shape.rank() - segments.rank();
  for (int i = 0; contained && i < segments.rank(); ++i) contained = shape[axis + i] == segments[i];
  call.require(contained, "data whose shape contains the shape of segments, from the axis on");
  std::vector<int64_t> dims = internal::dims_of(shape);
  dims.erase(dims.begin() + axis, dims.begin() + axis + segments.rank());
  dims.insert(dims.begin() + axis, count);
  return {{call.dtype(0), Shape(std::move(dims))}};
}

std::vector<Tensor> segment_sum_gradient(const GradientCall& call) {
  return {gather(call.gradient(), call.input(1), call.node.attributes.get<int64_t>("axis")), Tensor()};
}

struct SegmentExtents {
  int64_t outer, slices, segments, inner;
};

// Each thread owns a range of segments and walks all slices: every segment is summed by one thread, in order.
template <typename T>
void sum_segments(const KernelArguments& args, const internal::IndexReader& segment_of,
                  const SegmentExtents& extents) {
  const T* source = args.input<T>(0);
  T* target = args.output<T>(0);
  const int64_t grain = std::max<int64_t>(
      1, kSegmentSumElementsPerThread / std::max<int64_t>(1, extents.outer * extents.inner));
  args.team.parallel_for(extents.segments, grain, [&](int64_t begin, int64_t end) {
    for (int64_t outer = 0; outer < extents.outer; ++outer) {
      T* sums = target + outer * extents.segments * extents.inner;
      std::fill(sums + begin * extents.inner, sums + end * extents.inner, T{0});
      for (int64_t i = 0; i < extents.slices; ++i) {
        const int64_t segment = segment_of[i];
        if (segment < begin || segment >= end) continue;
        const T* from = source + (outer * extents.slices + i) * extents.inner;
        T* to = sums + segment * extents.inner;
        for (int64_t j = 0; j < extents.inner; ++j) to[j] += from[j];
      }
    }
  });
}

Kernel compile_segment_sum(const KernelRequest& request) {
  const Node& node = request.node;
  const Shape& shape = node.inputs[0].shape();
  const int axis = node.attributes.get<int64_t>("axis");
  const int last = axis + node.inputs[1].shape().rank();
  SegmentExtents extents{1, node.inputs[1].shape().elements(), node.attributes.get<int64_t>("segment_count"),
                         1};
  for (int i = 0; i < axis; ++i) extents.outer *= shape[i];
  for (int i = last; i < shape.rank(); ++i) extents.inner *= shape[i];
  internal::IndexCheck check(node, 1, extents.segments, "segment", "segments");
  const DType dtype = node.inputs[0].dtype();
  return plain_kernel(node, [extents, dtype, check = std::move(check)](const KernelArguments& args) {
    const internal::IndexReader segments = check.checked(args);
    if (dtype == DType::kFloat32) return sum_segments<float>(args, segments, extents);
    if (dtype == DType::kInt32) return sum_segments<int32_t>(args, segments, extents);
    sum_segments<int64_t>(args, segments, extents);
  });
}

const Op kSegmentSum{.name = "unsorted_segment_sum",
                     .infer = infer_segment_sum,
                     .gradient = segment_sum_gradient,
                     .compile = compile_segment_sum};

}  // namespace

Tensor unsorted_segment_sum(const Tensor& x, const Tensor& segments, int64_t segment_count, int64_t axis,
                            SourceLocation where) {
  return make_tensor(kSegmentSum, {x, segments}, {{"segment_count", segment_count}, {"axis", axis}}, where);
}

}  // namespace mox
