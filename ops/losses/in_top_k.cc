#include <algorithm>

#include "ops/losses/internal/classification.h"
#include "ops/losses/losses.h"
#include "ops/support/indices.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

constexpr int64_t kInTopKElementsPerThread = 1 << 15;

std::vector<TensorType> infer_in_top_k(const OpCall& call) {
  internal::require_logits_and_labels(call, "predictions", "targets");
  call.require(call.attributes.get<int64_t>("k") >= 1, "k >= 1");
  return {{DType::kBool, call.shape(1)}};
}

Kernel compile_in_top_k(const KernelRequest& request) {
  const Node& node = request.node;
  const int64_t batch = node.inputs[0].shape()[0], classes = node.inputs[0].shape()[1];
  const int64_t k = node.attributes.get<int64_t>("k");
  internal::IndexCheck check(node, 1, classes, "target", "classes");
  return plain_kernel(node, [batch, classes, k, check = std::move(check)](const KernelArguments& args) {
    const internal::IndexReader targets = check.checked(args);
    const float* predictions = args.input<float>(0);
    bool* result = args.output<bool>(0);
    const int64_t grain = std::max<int64_t>(1, kInTopKElementsPerThread / classes);
    args.team.parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t before =
            internal::elements_ranked_before(predictions + row * classes, classes, targets[row], false);
        result[row] = before >= 0 && before < k;
      }
    });
  });
}

const Op kInTopK{
    .name = "in_top_k", .infer = infer_in_top_k, .gradient = no_gradient, .compile = compile_in_top_k};

}  // namespace

Tensor in_top_k(const Tensor& predictions, const Tensor& targets, int64_t k, SourceLocation where) {
  return make_tensor(kInTopK, {predictions, targets}, {{"k", k}}, where);
}

}  // namespace mox
