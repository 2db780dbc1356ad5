// Which values of a graph are means over the samples of the batch: those that an evaluation may average.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"

namespace mox::internal {

// By how much constants divide the sums over samples that a value is made of, for each sample of the batch: 2
// where a sum over 50 samples is divided by 100; 0 where there is no sum. A mean has the same in batches of
// all sizes, but for rounding; what is divided by a fixed number has not.
using SumDivisor = double;

// For each of the `values` its divisor, if its mean over batches, each with its number of samples, is its
// value over all samples: it is made of reduce_mean over rows that each depend on one sample, of sums of such
// means, of means times constants, or of nothing from the batch. None where that cannot be seen: it is never
// said of a quotient of sums, a root of a mean or a largest value. `samples`: those of the batch, the first
// extent of its components. Normalisation by the batch's own statistics counts as one row a sample.
std::vector<std::optional<SumDivisor>> means_over_samples(const Graph& graph, std::span<const Tensor> values,
                                                          int64_t samples);

// The first element-wise op of the graph that meets one number a sample, [samples], with another as a column,
// [samples, 1]: what comes of it, [samples, samples], puts every sample beside every other one. Null if there
// is none.
const Node* first_of_all_pairs(const Graph& graph, int64_t samples);

}  // namespace mox::internal
