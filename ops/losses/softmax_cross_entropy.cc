#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/internal/classification.h"
#include "ops/losses/losses.h"
#include "ops/shape/shape.h"
#include "ops/softmax/softmax.h"
#include "ops/softmax/softmax_rows.h"
#include "ops/support/row_math.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

// Two outputs, as those of sparse_softmax_cross_entropy and for the same reason.
std::vector<TensorType> infer_softmax_cross_entropy(const OpCall& call) {
  internal::require_logits_and_distributions(call);
  internal::require_smoothing(call);
  const int64_t batch = call.shape(0)[0];
  return {{DType::kFloat32, Shape{batch}}, {DType::kFloat32, Shape{2, batch}}};
}

std::vector<Tensor> gradient_of_softmax_cross_entropy(const GradientCall& call) {
  const double smoothing = internal::smoothing_of(call.node.attributes);
  const Tensor &logits = call.input(0), &labels = call.input(1), &g = call.gradient();
  return {softmax_cross_entropy_gradient(logits, labels, call.output(1), g, {.label_smoothing = smoothing}),
          mul(log_softmax(logits), expand_dims(mul(g, smoothing - 1), 1))};
}

// sum(t * (log_sum - (x - maximum))); a label of 0 adds nothing, however small its probability.
float weighted_loss(const float* x, const float* labels, int64_t classes, float maximum, float log_sum) {
  const auto add_term = [&](int64_t i, float sum) {
    const float term = labels[i] * (log_sum - (x[i] - maximum));
    return sum + (labels[i] == 0 ? 0.0f : term);
  };
  return internal::reduce_row(classes, 0.0f, add_term, internal::add);
}

Kernel compile_softmax_cross_entropy(const KernelRequest& request) {
  const Node& node = request.node;
  const int64_t batch = node.inputs[0].shape()[0], classes = node.inputs[0].shape()[1];
  const float smoothing = internal::smoothing_of(node.attributes);
  return plain_kernel(node, [batch, classes, smoothing](const KernelArguments& args) {
    const float* logits = args.input<float>(0);
    const float* labels = args.input<float>(1);
    float* loss = args.output<float>(0);
    float* maxima = args.output<float>(1);
    float* log_sums = maxima + batch;
    internal::for_row_groups(batch, classes, args.team, [&](int64_t first, int64_t rows) {
      internal::row_statistics(logits + first * classes, rows, classes, maxima + first, log_sums + first);
      for (int64_t row = first; row < first + rows; ++row) {
        const float* x = logits + row * classes;
        loss[row] = weighted_loss(x, labels + row * classes, classes, maxima[row], log_sums[row]);
        if (smoothing == 0) continue;
        const float mean = internal::row_sum_of_differences(x, classes, maxima[row]) / classes;
        loss[row] = (1 - smoothing) * loss[row] + smoothing * (log_sums[row] - mean);
      }
    });
  });
}

const Op kSoftmaxCrossEntropy{.name = "softmax_cross_entropy",
                              .infer = infer_softmax_cross_entropy,
                              .gradient = gradient_of_softmax_cross_entropy,
                              .compile = compile_softmax_cross_entropy};

}  // namespace

Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options,
                             SourceLocation where) {
  return make_tensor(kSoftmaxCrossEntropy, {logits, labels}, {{"label_smoothing", options.label_smoothing}},
                     where);
}

}  // namespace mox
