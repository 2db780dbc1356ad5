#include <algorithm>
#include <atomic>
#include <limits>

#include "ops/losses/internal/classification.h"
#include "ops/losses/losses.h"
#include "ops/support/indices.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

constexpr int64_t kAccuracyElementsPerThread = 1 << 15;

std::vector<TensorType> infer_accuracy(const OpCall& call) {
  internal::require_logits_and_labels(call, "logits", "labels");
  return {{DType::kFloat32, Shape{}}};
}

Kernel compile_accuracy(const KernelRequest& request) {
  const Node& node = request.node;
  const int64_t batch = node.inputs[0].shape()[0], classes = node.inputs[0].shape()[1];
  internal::IndexCheck check(node, 1, classes, "label", "classes");
  return plain_kernel(node, [batch, classes, check = std::move(check)](const KernelArguments& args) {
    const internal::IndexReader labels = check.checked(args);
    const float* logits = args.input<float>(0);
    std::atomic<int64_t> correct = 0;  // a sum of integers: its order does not matter
    const int64_t grain = std::max<int64_t>(1, kAccuracyElementsPerThread / classes);
    args.team.parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
      int64_t count = 0;
      for (int64_t row = begin; row < end; ++row)
        count += internal::elements_ranked_before(logits + row * classes, classes, labels[row], true) == 0;
      correct.fetch_add(count, std::memory_order_relaxed);
    });
    args.output<float>(0)[0] = batch == 0 ? std::numeric_limits<float>::quiet_NaN()
                                          : static_cast<float>(static_cast<double>(correct.load()) / batch);
  });
}

const Op kAccuracy{
    .name = "accuracy", .infer = infer_accuracy, .gradient = no_gradient, .compile = compile_accuracy};

}  // namespace

Tensor accuracy(const Tensor& logits, const Tensor& labels, SourceLocation where) {
  return make_tensor(kAccuracy, {logits, labels}, {}, where);
}

}  // namespace mox
