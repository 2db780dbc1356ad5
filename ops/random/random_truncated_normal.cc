#include "ops/random/internal/random_op.h"
#include "ops/random/random.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

Kernel compile_random_truncated_normal(const KernelRequest& request) {
  const float mean = request.node.attributes.get<double>("mean");
  const float stddev = request.node.attributes.get<double>("stddev");
  return internal::random_kernel(
      request.node, [mean, stddev](const RandomStream& stream, std::span<float> elements, uint64_t first) {
        stream.fill_truncated_normal(elements, first, mean, stddev);
      });
}

const Op kRandomTruncatedNormal{.name = "random_truncated_normal",
                                .kind = Op::Kind::kRandom,
                                .infer = internal::infer_normal,
                                .compile = compile_random_truncated_normal};

}  // namespace

Tensor random_truncated_normal(std::vector<int64_t> shape, const RandomNormalOptions& options,
                               SourceLocation where) {
  return make_tensor(kRandomTruncatedNormal, {},
                     {{"shape", std::move(shape)}, {"mean", options.mean}, {"stddev", options.stddev}},
                     where);
}

}  // namespace mox
