#include "ops/arithmetic/arithmetic.h"
#include "ops/indexing/indexing.h"
#include "ops/losses/internal/classification.h"
#include "ops/losses/internal/cross_entropy.h"
#include "ops/losses/losses.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/shape.h"
#include "ops/softmax/softmax.h"
#include "ops/support/indices.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::vector<TensorType> infer_sparse_softmax_cross_entropy_gradient(const OpCall& call) {
  internal::require_logits_and_labels(call, "logits", "labels");
  internal::require_smoothing(call);
  internal::require_statistics_and_loss_gradient(call);
  return same_as_input(call);
}

// Of h . ((p - t) * dy), with p the softmax and t the (smoothed) one-hot labels.
std::vector<Tensor> gradient_of_sparse_softmax_cross_entropy_gradient(const GradientCall& call) {
  const Tensor &logits = call.input(0), &dy = call.input(3), &h = call.gradient();
  const Tensor p = softmax(logits);
  const Tensor t =
      smooth_labels(one_hot(call.input(1), logits.shape()[1]), internal::smoothing_of(call.node.attributes));
  return {softmax_gradient(p, mul(h, expand_dims(dy, 1))), Tensor(), Tensor(),
          reduce_sum(mul(h, sub(p, t)), {.axes = {1}})};
}

Kernel compile_sparse_softmax_cross_entropy_gradient(const KernelRequest& request) {
  const Node& node = request.node;
  internal::IndexCheck check(node, 1, node.inputs[0].shape()[1], "label", "classes");
  return internal::cross_entropy_gradient_kernel(
      node, [check = std::move(check)](const internal::CrossEntropy& of, const KernelArguments& args) {
        const internal::IndexReader labels = check.checked(args);
        const float elsewhere = of.smoothing / of.classes;  // what t holds for the other classes
        return [=, classes = of.classes, smoothing = of.smoothing](int64_t row, float* to, float dy) {
          to[labels[row]] -= 1 - smoothing;
          for (int64_t i = 0; i < classes; ++i) to[i] = (to[i] - elsewhere) * dy;
        };
      });
}

const Op kSparseSoftmaxCrossEntropyGradient{.name = "sparse_softmax_cross_entropy_gradient",
                                            .infer = infer_sparse_softmax_cross_entropy_gradient,
                                            .gradient = gradient_of_sparse_softmax_cross_entropy_gradient,
                                            .compile = compile_sparse_softmax_cross_entropy_gradient};

}  // namespace

Tensor sparse_softmax_cross_entropy_gradient(const Tensor& logits, const Tensor& labels,
                                             const Tensor& statistics, const Tensor& dy,
                                             const CrossEntropyOptions& options, SourceLocation where) {
  return make_tensor(kSparseSoftmaxCrossEntropyGradient, {logits, labels, statistics, dy},
                     {{"label_smoothing", options.label_smoothing}}, where);
}

}  // namespace mox
