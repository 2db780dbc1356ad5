// What a ReplicatedStep keeps for each model that it has seen.
#pragma once

#include "moxing/engine/step/replicated_step.h"

namespace mox::internal {

// The two reductions of one model, of gradients and of after-step values, and where their sums go.
struct ReplicatedStep::Reductions {
  std::vector<std::string> gradient_variables, fetch_names;
  UpdateGate::Targets targets;
  std::unique_ptr<GradientReduction> gradients;   // none if they are taken in parts
  std::unique_ptr<GradientReduction> after_step;  // none if there is one replica, or no value
  std::vector<BlockPart> after_step_parts;
  std::vector<std::vector<float>> after_step_blocks;  // of each lane
  StepValues::Kinds fetches;

  void begin_step() {
    if (gradients) gradients->begin_step();
    if (after_step) after_step->begin_step();
  }
  void finish_lane(int lane) {
    if (gradients) gradients->finish_lane(lane);
    if (after_step) after_step->finish_lane(lane);
  }
  void abandon_lane(int lane) {
    if (gradients) gradients->abandon_lane(lane);
    if (after_step) after_step->abandon_lane(lane);
  }
};

}  // namespace mox::internal
