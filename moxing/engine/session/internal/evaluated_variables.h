// Whether the model that a training evaluates is the one that it trains.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace mox::internal {

// Warnings, of the rank that `says`: for trainable variables that the evaluation has alone, whose initial
// values it measures (`restored`: what the run has got from a checkpoint and its training has no use for, is
// not among them); and where a layer without a name has in the evaluation the number of another one, since
// they are counted in each mode by itself.
void warn_of_untrained_variables(const Graph& trained, const Graph& evaluated,
                                 const std::vector<std::string>& restored, bool says);

}  // namespace mox::internal
