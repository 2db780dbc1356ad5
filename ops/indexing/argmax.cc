#include <algorithm>

#include "ops/indexing/indexing.h"
#include "ops/support/axis_view.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

constexpr int64_t kArgmaxElementsPerThread = 1 << 14;

std::vector<TensorType> infer_argmax(const OpCall& call) {
  const int axis = internal::checked_axis(call, call.attributes.get<int64_t>("axis"), call.shape(0).rank());
  call.require(call.dtype(0) != DType::kBool && call.dtype(0) != DType::kBFloat16,
               "an input of dtype float32, int32, int64 or uint8");
  call.require(call.shape(0)[axis] >= 1, "at least one element on the axis");
  std::vector<int64_t> dims = internal::dims_of(call.shape(0));
  dims.erase(dims.begin() + axis);
  return {{DType::kInt64, Shape(std::move(dims))}};
}

// The comparisons with itself are true for NaN alone.
template <typename T>
bool beats(T candidate, T best) {
  return candidate > best || (candidate != candidate && best == best);
}

template <typename T>
void find_largest(const KernelArguments& args, const internal::AxisView& view) {
  const T* source = args.input<T>(0);
  int64_t* target = args.output<int64_t>(0);
  const int64_t grain = std::max<int64_t>(1, kArgmaxElementsPerThread / view.extent);
  args.team.parallel_for(view.outer * view.inner, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = source + i / view.inner * view.extent * view.inner + i % view.inner;
      int64_t best = 0;
      for (int64_t j = 1; j < view.extent; ++j)
        if (beats(from[j * view.inner], from[best * view.inner])) best = j;
      target[i] = best;
    }
  });
}

Kernel compile_argmax(const KernelRequest& request) {
  const TensorType& type = request.node.inputs[0].type();
  const auto view = internal::axis_view(
      type.shape, type.shape.normalized_axis(request.node.attributes.get<int64_t>("axis")));
  const DType dtype = type.dtype;
  return plain_kernel(request.node, [view, dtype](const KernelArguments& args) {
    switch (dtype) {
      case DType::kFloat32:
        return find_largest<float>(args, view);
      case DType::kInt32:
        return find_largest<int32_t>(args, view);
      case DType::kInt64:
        return find_largest<int64_t>(args, view);
      default:
        return find_largest<uint8_t>(args, view);
    }
  });
}

const Op kArgmax{.name = "argmax", .infer = infer_argmax, .gradient = no_gradient, .compile = compile_argmax};

}  // namespace

Tensor argmax(const Tensor& x, int64_t axis, SourceLocation where) {
  return make_tensor(kArgmax, {x}, {{"axis", axis}}, where);
}

}  // namespace mox
