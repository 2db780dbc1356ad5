#include <cmath>

#include "ops/random/internal/random_op.h"
#include "ops/random/random.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

float low_of(const Attributes& attributes) { return attributes.get<double>("low"); }
float high_of(const Attributes& attributes) { return attributes.get<double>("high"); }

std::vector<TensorType> infer_random_uniform(const OpCall& call) {
  const float low = low_of(call.attributes), high = high_of(call.attributes);
  call.require(std::isfinite(low) && std::isfinite(high) && std::isfinite(high - low) && low < high,
               "finite low < high");
  return internal::random_type(call);
}

Kernel compile_random_uniform(const KernelRequest& request) {
  const float low = low_of(request.node.attributes), high = high_of(request.node.attributes);
  return internal::random_kernel(
      request.node, [low, high](const RandomStream& stream, std::span<float> elements, uint64_t first) {
        stream.fill_uniform(elements, first, low, high);
      });
}

const Op kRandomUniform{.name = "random_uniform",
                        .kind = Op::Kind::kRandom,
                        .infer = infer_random_uniform,
                        .compile = compile_random_uniform};

}  // namespace

Tensor random_uniform(std::vector<int64_t> shape, const RandomUniformOptions& options, SourceLocation where) {
  return make_tensor(kRandomUniform, {},
                     {{"shape", std::move(shape)}, {"low", options.low}, {"high", options.high}}, where);
}

}  // namespace mox
