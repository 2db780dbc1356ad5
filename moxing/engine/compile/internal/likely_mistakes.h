// Models that train without an error and learn something else than was meant.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace mox::internal {

// A warning, naming the line, for the first op that puts every sample beside every other one by broadcasting
// (first_of_all_pairs), for the first cross entropy of logits that is given probabilities, and for the first
// convolution of data whose last axis seems to be that of the channels. `signature`: of the batch.
void warn_of_likely_mistakes(const Graph& graph, const std::vector<TensorType>& signature);

}  // namespace mox::internal
