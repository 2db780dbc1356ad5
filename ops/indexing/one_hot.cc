#include <cstring>

#include "ops/indexing/indexing.h"
#include "ops/support/indices.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

constexpr int64_t kRowsPerThread = 1 << 10;

std::vector<TensorType> infer_one_hot(const OpCall& call) {
  internal::require_indices(call, 0, "indices");
  const int64_t depth = call.attributes.get<int64_t>("depth");
  const DType dtype = call.attributes.get<DType>("dtype");
  call.require(depth >= 0, "a depth >= 0");
  call.require(dtype != DType::kBFloat16, "dtype float32, int32, int64, uint8 or bool");
  std::vector<int64_t> dims = internal::dims_of(call.shape(0));
  dims.push_back(depth);
  return {{dtype, Shape(std::move(dims))}};
}

template <typename T>
void write_one_hot(const KernelArguments& args, const internal::IndexReader& indices, int64_t rows,
                   int64_t depth) {
  T* target = args.output<T>(0);
  args.team.parallel_for(rows, kRowsPerThread, [&](int64_t begin, int64_t end) {
    std::memset(target + begin * depth, 0, ((end - begin) * depth) * sizeof(T));
    for (int64_t row = begin; row < end; ++row) target[row * depth + indices[row]] = T{1};
  });
}

Kernel compile_one_hot(const KernelRequest& request) {
  const Node& node = request.node;
  const int64_t rows = node.inputs[0].shape().elements(), depth = node.attributes.get<int64_t>("depth");
  const DType dtype = node.outputs[0].dtype;
  internal::IndexCheck check(node, 0, depth, "index", "positions");
  return plain_kernel(node, [rows, depth, dtype, check = std::move(check)](const KernelArguments& args) {
    const internal::IndexReader indices = check.checked(args);
    switch (dtype) {
      case DType::kFloat32:
        return write_one_hot<float>(args, indices, rows, depth);
      case DType::kInt32:
        return write_one_hot<int32_t>(args, indices, rows, depth);
      case DType::kInt64:
        return write_one_hot<int64_t>(args, indices, rows, depth);
      default:  // uint8 and bool store 1 as the same byte
        return write_one_hot<uint8_t>(args, indices, rows, depth);
    }
  });
}

const Op kOneHot{
    .name = "one_hot", .infer = infer_one_hot, .gradient = no_gradient, .compile = compile_one_hot};

}  // namespace

Tensor one_hot(const Tensor& indices, int64_t depth, DType dtype, SourceLocation where) {
  return make_tensor(kOneHot, {indices}, {{"depth", depth}, {"dtype", dtype}}, where);
}

}  // namespace mox
