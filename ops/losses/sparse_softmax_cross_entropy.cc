#include <algorithm>

#include "ops/losses/internal/classification.h"
#include "ops/losses/losses.h"
#include "ops/softmax/softmax_rows.h"
#include "ops/support/indices.h"
#include "ops/support/row_math.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

// The second output holds each row's maximum and, behind all maxima, each row's logarithm of the sum: from
// these the backward pass computes the softmax again, which costs one exp an element. Keeping the softmax
// itself would write and read [batch, classes] once more, and would be for nothing where no gradient is
// taken.
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
  const int64_t batch = node.inputs[0].shape()[0], classes = node.inputs[0].shape()[1];
  const float smoothing = internal::smoothing_of(node.attributes);
  internal::IndexCheck check(node, 1, classes, "label", "classes");
  return plain_kernel(
      node, [batch, classes, smoothing, check = std::move(check)](const KernelArguments& args) {
        const internal::IndexReader labels = check.checked(args);
        const float* logits = args.input<float>(0);
        float* loss = args.output<float>(0);
        float* maxima = args.output<float>(1);
        float* log_sums = maxima + batch;
        internal::for_row_groups(batch, classes, args.team, [&](int64_t first, int64_t rows) {
          internal::row_statistics(logits + first * classes, rows, classes, maxima + first, log_sums + first);
          for (int64_t row = first; row < first + rows; ++row) {
            const float* x = logits + row * classes;
            loss[row] = log_sums[row] - (x[labels[row]] - maxima[row]);
            if (smoothing == 0) continue;
            const float mean = internal::row_sum_of_differences(x, classes, maxima[row]) / classes;
            loss[row] = (1 - smoothing) * loss[row] + smoothing * (log_sums[row] - mean);
          }
        });
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
