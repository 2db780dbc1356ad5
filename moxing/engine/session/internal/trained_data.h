// Says when a run evaluates on the data that it has trained on.
#pragma once

#include <string>
#include <vector>

#include "runtime/data/dataset.h"

namespace mox::internal {

// A warning, of rank 0. The data sets are of samples.
void warn_of_trained_data(const Dataset& training, const Dataset& evaluation);

// The same for a checkpoint whose training had these contents (content_sample).
void warn_of_trained_data(const std::vector<std::string>& training, const std::string& checkpoint,
                          const Dataset& evaluation);

}  // namespace mox::internal
