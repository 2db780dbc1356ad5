// Which values of a graph are means over the samples of the batch: those that an evaluation may average.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"

namespace mox::internal {

// For each of the `values`, whether its mean over batches, each with its number of samples, is its value over
// all samples: it is made of reduce_mean over rows that each depend on one sample, of sums of such means, of
// means times constants, or of nothing from the batch. False where that cannot be seen: it is never said of a
// quotient of sums, a root of a mean or a largest value. `samples`: those of the batch, the first extent of
// its components. Normalisation by the batch's own statistics counts as one row a sample.
std::vector<bool> are_means_over_samples(const Graph& graph, std::span<const Tensor> values, int64_t samples);

// The first element-wise op of the graph that meets one number a sample, [samples], with another as a column,
// [samples, 1]: what comes of it, [samples, samples], puts every sample beside every other one. Null if there
// is none.
const Node* first_of_all_pairs(const Graph& graph, int64_t samples);

}  // namespace mox::internal
