// Weights of samples in losses.
#include <fmt/format.h>

#include <algorithm>

#include "ops/arithmetic/arithmetic.h"
#include "ops/comparison/comparison.h"
#include "ops/indexing/indexing.h"
#include "ops/losses/losses.h"
#include "ops/reduction/reduction.h"
#include "ops/support/require_same_type.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"
#include "runtime/tensor/float32_range.h"
#include "runtime/text/unsigned_nan.h"

namespace mox {

Tensor class_weights(const Tensor& labels, const std::vector<double>& weights, SourceLocation where) {
  if (!labels.defined()) throw InvalidArgument("class_weights: the labels are an undefined tensor");
  Array table(DType::kFloat32, {std::ssize(weights)});
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !is_finite_float32(weights[i]))
      throw InvalidArgument(
          fmt::format("class_weights ({}:{}): the weight of class {} is {}; weights are finite "
                      "as float32, and >= 0",
                      where.file_name(), where.line(), i, unsigned_nan(weights[i])));
    table.values<float>()[i] = weights[i];
  }
  if (!weights.empty() && std::ranges::all_of(weights, [](double weight) { return weight == 0; }))
    throw InvalidArgument(fmt::format(
        "class_weights ({}:{}): the weights of all {} classes are 0, so that nothing would be learnt; one "
        "above 0 is needed",
        where.file_name(), where.line(), weights.size()));
  NameScope scope("class_weights");
  return gather(labels.node()->graph->constant(table, where), labels, 0, where);
}

Tensor weighted_mean(const Tensor& values, const Tensor& weights, SourceLocation where) {
  require_same_type("weighted_mean", values, weights, where);
  NameScope scope("weighted_mean");
  const Tensor sum = reduce_sum(mul(values, weights, where), {}, where),
               total = reduce_sum(weights, {}, where), is_nothing = equal(total, 0, where);
  return select(is_nothing, 0, div(sum, select(is_nothing, 1, total, where), where), where);
}

}  // namespace mox
