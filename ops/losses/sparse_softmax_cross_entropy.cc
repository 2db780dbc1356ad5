#include "ops/losses/internal/classification.h"
#include "ops/losses/internal/cross_entropy.h"
#include "ops/losses/losses.h"
#include "ops/support/indices.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

// The second output holds each row's maximum and, behind all maxima, each row's logarithm of the sum: from
// these the backward pass computes the softmax again, which costs one exp an element. Keeping the softmax
// itself would write and read [batch, classes] once more, and would be for nothing where no
// gradient is taken.
std::vector<TensorType> infer_sparse_softmax_cross_entropy(const OpCall& call) {
  internal::require_logits_and_labels(call, "logits", "labels");
  internal::require_smoothing(call);
  const int64_t batch = call.shape(0)[0];
  return {{DType::kFloat32, Shape{batch}}, {DType::kFloat32, Shape{2, batch}}};
}

std::vector<Tensor> gradient_of_sparse_softmax_cross_entropy(const GradientCall& call) {
  return {sparse_softmax_cross_entropy_gradient(
              call.input(0), call.input(1), call.output(1), call.gradient(),
              {.label_smoothing = internal::smoothing_of(call.node.attributes)}),
          Tensor()};
}

Kernel compile_sparse_softmax_cross_entropy(const KernelRequest& request) {
  const Node& node = request.node;
  internal::IndexCheck check(node, 1, node.inputs[0].shape()[1], "label", "classes");
  return internal::cross_entropy_kernel(
      node, [check = std::move(check)](const internal::CrossEntropy&, const KernelArguments& args) {
        const internal::IndexReader labels = check.checked(args);
        return [labels](int64_t row, const float* x, float maximum, float log_sum) {
          return log_sum - (x[labels[row]] - maximum);
        };
      });
}

const Op kSparseSoftmaxCrossEntropy{.name = "sparse_softmax_cross_entropy",
                                    .infer = infer_sparse_softmax_cross_entropy,
                                    .gradient = gradient_of_sparse_softmax_cross_entropy,
                                    .compile = compile_sparse_softmax_cross_entropy};

}  // namespace

Tensor sparse_softmax_cross_entropy(const Tensor& logits, const Tensor& labels,
                                    const CrossEntropyOptions& options, SourceLocation where) {
  return make_tensor(kSparseSoftmaxCrossEntropy, {logits, labels},
                     {{"label_smoothing", options.label_smoothing}}, where);
}

}  // namespace mox
