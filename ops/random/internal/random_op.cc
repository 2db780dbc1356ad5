#include "ops/random/internal/random_op.h"

#include "runtime/tensor/float32_range.h"

namespace mox::internal {
namespace {

constexpr int64_t kNumbersPerThread = 1 << 11;  // a number costs some ten nanoseconds

}  // namespace

std::vector<TensorType> random_type(const OpCall& call) {
  return {{DType::kFloat32, Shape(call.attributes.get<std::vector<int64_t>>("shape"))}};
}

std::vector<TensorType> infer_normal(const OpCall& call) {
  const double stddev = call.attributes.get<double>("stddev");
  call.require(is_finite_float32(call.attributes.get<double>("mean")), "a finite mean, as a float32 too");
  call.require(is_finite_float32(stddev) && stddev >= 0, "a finite stddev >= 0, as a float32 too");
  return random_type(call);
}

Kernel random_kernel(const Node& node,
                     std::function<void(const RandomStream&, std::span<float>, uint64_t)> fill) {
  const int64_t elements = node.outputs[0].shape.elements();
  const uint64_t node_key = stable_hash(node.name);
  return plain_kernel(
      node,
      [elements, node_key, fill = std::move(fill)](const KernelArguments& args) {
        const RandomStream stream = stream_of(node_key, args);
        float* out = args.output<float>(0);
        args.team.parallel_for(elements, kNumbersPerThread, [&](int64_t begin, int64_t end) {
          fill(stream, {out + begin, out + end}, begin);
        });
      },
      "philox");
}

}  // namespace mox::internal
