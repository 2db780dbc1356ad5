// What a ReplicatedStep keeps for each model that it has seen.
#pragma once

#include "moxing/engine/step/replicated_step.h"

namespace mox::internal {

// The two reductions of one model: of gradients, and of what is updated after the step.
struct ReplicatedStep::Reductions {
  std::vector<std::string> gradient_variables, fetch_names;
  std::vector<size_t> parameters;
  std::vector<int64_t> gradient_elements;
  std::unique_ptr<GradientReduction> gradients, updates;
  std::vector<BlockPart> update_parts;
  std::vector<std::vector<float>> update_blocks;  // of each lane
  std::vector<std::string> updated_variables;
  // each fetch: one of output_info; else one number, which is averaged
  std::vector<bool> is_output, is_number;
};

}  // namespace mox::internal
