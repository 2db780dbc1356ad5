#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/internal/classification.h"
#include "ops/losses/internal/cross_entropy.h"
#include "ops/losses/losses.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/shape.h"
#include "ops/softmax/softmax.h"
#include "ops/support/row_math.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::vector<TensorType> infer_softmax_cross_entropy_gradient(const OpCall& call) {
  internal::require_logits_and_distributions(call);
  internal::require_smoothing(call);
  internal::require_statistics_and_loss_gradient(call);
  return same_as_input(call);
}

Tensor sum_of_rows(const Tensor& x) { return reduce_sum(x, {.axes = {1}, .keep_dims = true}); }

// Of h . ((p * sum(t) - t) * dy), with p the softmax and t the smoothed labels.
std::vector<Tensor> gradient_of_softmax_cross_entropy_gradient(const GradientCall& call) {
  const double smoothing = internal::smoothing_of(call.node.attributes);
  const Tensor &logits = call.input(0), &h = call.gradient();
  const Tensor dy = expand_dims(call.input(3), 1), p = softmax(logits),
               t = smooth_labels(call.input(1), smoothing);
  const Tensor mass = sum_of_rows(t);
  return {mul(softmax_gradient(p, mul(h, dy)), mass),
          mul(sub(sum_of_rows(mul(h, p)), h), mul(dy, 1 - smoothing)), Tensor(),
          reduce_sum(mul(h, sub(mul(p, mass), t)), {.axes = {1}})};
}

Kernel compile_softmax_cross_entropy_gradient(const KernelRequest& request) {
  return internal::cross_entropy_gradient_kernel(
      request.node, [](const internal::CrossEntropy& of, const KernelArguments& args) {
        const float everywhere = of.smoothing / of.classes;  // what smoothing adds to each label
        return [=, classes = of.classes, smoothing = of.smoothing, all_labels = args.input<float>(1)](
                   int64_t row, float* to, float dy) {
          const float* labels = all_labels + row * classes;
          const float mass = (1 - smoothing) * internal::row_sum(labels, classes) + smoothing;
          for (int64_t i = 0; i < classes; ++i)
            to[i] = (to[i] * mass - ((1 - smoothing) * labels[i] + everywhere)) * dy;
        };
      });
}

const Op kSoftmaxCrossEntropyGradient{.name = "softmax_cross_entropy_gradient",
                                      .infer = infer_softmax_cross_entropy_gradient,
                                      .gradient = gradient_of_softmax_cross_entropy_gradient,
                                      .compile = compile_softmax_cross_entropy_gradient};

}  // namespace

Tensor softmax_cross_entropy_gradient(const Tensor& logits, const Tensor& labels, const Tensor& statistics,
                                      const Tensor& dy, const CrossEntropyOptions& options,
                                      SourceLocation where) {
  return make_tensor(kSoftmaxCrossEntropyGradient, {logits, labels, statistics, dy},
                     {{"label_smoothing", options.label_smoothing}}, where);
}

}  // namespace mox
