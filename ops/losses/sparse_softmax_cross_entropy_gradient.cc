#include "ops/arithmetic/arithmetic.h"
#include "ops/indexing/indexing.h"
#include "ops/losses/internal/classification.h"
#include "ops/losses/losses.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/shape.h"
#include "ops/softmax/softmax.h"
#include "ops/softmax/softmax_rows.h"
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
  const int64_t batch = node.inputs[0].shape()[0], classes = node.inputs[0].shape()[1];
  const float smoothing = internal::smoothing_of(node.attributes);
  const float elsewhere = smoothing / classes;  // what t holds for the other classes
  internal::IndexCheck check(node, 1, classes, "label", "classes");
  Kernel kernel = plain_kernel(node, [=, check = std::move(check)](const KernelArguments& args) {
    const internal::IndexReader labels = check.checked(args);
    const float* logits = args.input<float>(0);
    const float* maxima = args.input<float>(2);
    const float* log_sums = maxima + batch;
    const float* dy = args.input<float>(3);
    float* dx = args.output<float>(0);
    internal::for_row_groups(batch, classes, args.team, [&](int64_t first, int64_t rows) {
      float* to = dx + first * classes;
      internal::softmax_from_statistics(logits + first * classes, rows, classes, maxima + first,
                                        log_sums + first, to);
      for (int64_t row = first; row < first + rows; ++row, to += classes) {
        to[labels[row]] -= 1 - smoothing;
        for (int64_t i = 0; i < classes; ++i) to[i] = (to[i] - elsewhere) * dy[row];
      }
    });
  });
  kernel.in_place = {{0, 0}};  // a group of rows is read into a buffer before it is written
  return kernel;
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
