#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/internal/classification.h"
#include "ops/losses/losses.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/shape.h"
#include "ops/softmax/softmax.h"
#include "ops/softmax/softmax_rows.h"
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
  const Node& node = request.node;
  const int64_t batch = node.inputs[0].shape()[0], classes = node.inputs[0].shape()[1];
  const float smoothing = internal::smoothing_of(node.attributes);
  const float everywhere = smoothing / classes;  // what smoothing adds to each label
  Kernel kernel = plain_kernel(node, [=](const KernelArguments& args) {
    const float* logits = args.input<float>(0);
    const float* maxima = args.input<float>(2);
    const float* log_sums = maxima + batch;
    const float* dy = args.input<float>(3);
    float* dx = args.output<float>(0);
    internal::for_row_groups(batch, classes, args.team, [&](int64_t first, int64_t rows) {
      float* to = dx + first * classes;
      const float* labels = args.input<float>(1) + first * classes;
      internal::softmax_from_statistics(logits + first * classes, rows, classes, maxima + first,
                                        log_sums + first, to);
      for (int64_t row = first; row < first + rows; ++row, to += classes, labels += classes) {
        const float mass = (1 - smoothing) * internal::row_sum(labels, classes) + smoothing;
        for (int64_t i = 0; i < classes; ++i)
          to[i] = (to[i] * mass - ((1 - smoothing) * labels[i] + everywhere)) * dy[row];
      }
    });
  });
  kernel.in_place = {{0, 0}};  // a group of rows is read into a buffer before it is written
  return kernel;
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
