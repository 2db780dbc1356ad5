#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/internal/classification.h"
#include "ops/losses/internal/cross_entropy.h"
#include "ops/losses/losses.h"
#include "ops/shape/shape.h"
#include "ops/softmax/softmax.h"
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
  return internal::cross_entropy_kernel(
      request.node, [](const internal::CrossEntropy& of, const KernelArguments& args) {
        const int64_t classes = of.classes;
        const float* labels = args.input<float>(1);
        return [classes, labels](int64_t row, const float* x, float maximum, float log_sum) {
          return weighted_loss(x, labels + row * classes, classes, maximum, log_sum);
        };
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
