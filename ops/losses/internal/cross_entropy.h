// The kernels of softmax_cross_entropy, of sparse_softmax_cross_entropy and of their gradients. The two
// differ in what they know of a row: a label for each class, or one class.
#pragma once

#include <utility>

#include "ops/losses/internal/classification.h"
#include "ops/softmax/softmax_rows.h"
#include "ops/support/row_math.h"
#include "runtime/graph/op.h"

namespace mox::internal {

// What a node of a cross entropy or of its gradient says; input 0 are the logits [batch, classes].
struct CrossEntropy {
  explicit CrossEntropy(const Node& node)
      : batch(node.inputs[0].shape()[0]),
        classes(node.inputs[0].shape()[1]),
        smoothing(smoothing_of(node.attributes)) {}

  int64_t batch, classes;
  float smoothing;
};

// Of a node with the outputs loss and statistics. `read_labels(of, args)` gives, at the beginning of a run,
// the function (row, logits, maximum, log_sum) that computes a row's loss without smoothing.
template <typename ReadLabels>
Kernel cross_entropy_kernel(const Node& node, ReadLabels read_labels) {
  return plain_kernel(
      node, [of = CrossEntropy(node), read_labels = std::move(read_labels)](const KernelArguments& args) {
        const auto loss_of = read_labels(of, args);
        const float* logits = args.input<float>(0);
        float* loss = args.output<float>(0);
        float* maxima = args.output<float>(1);
        float* log_sums = maxima + of.batch;
        for_row_groups(of.batch, of.classes, args.team, [&](int64_t first, int64_t rows) {
          const float* x = logits + first * of.classes;
          row_statistics(x, rows, of.classes, maxima + first, log_sums + first);
          for (int64_t row = first; row < first + rows; ++row, x += of.classes) {
            loss[row] = loss_of(row, x, maxima[row], log_sums[row]);
            if (of.smoothing == 0) continue;
            const float mean = row_sum_of_differences(x, of.classes, maxima[row]) / of.classes;
            loss[row] = (1 - of.smoothing) * loss[row] + of.smoothing * (log_sums[row] - mean);
          }
        });
      });
}

// Of a node with the inputs logits, labels, statistics and dy. `read_labels(of, args)` gives the function
// (row, to, dy) that makes of a row's softmax, in `to`, the gradient of its logits.
template <typename ReadLabels>
Kernel cross_entropy_gradient_kernel(const Node& node, ReadLabels read_labels) {
  Kernel kernel = plain_kernel(
      node, [of = CrossEntropy(node), read_labels = std::move(read_labels)](const KernelArguments& args) {
        const auto differentiate = read_labels(of, args);
        const float* logits = args.input<float>(0);
        const float* maxima = args.input<float>(2);
        const float* log_sums = maxima + of.batch;
        const float* dy = args.input<float>(3);
        float* dx = args.output<float>(0);
        for_row_groups(of.batch, of.classes, args.team, [&](int64_t first, int64_t rows) {
          float* to = dx + first * of.classes;
          softmax_from_statistics(logits + first * of.classes, rows, of.classes, maxima + first,
                                  log_sums + first, to);
          for (int64_t row = first; row < first + rows; ++row, to += of.classes)
            differentiate(row, to, dy[row]);
        });
      });
  kernel.in_place = {{0, 0}};  // a group of rows is read into a buffer before it is written
  return kernel;
}

}  // namespace mox::internal
