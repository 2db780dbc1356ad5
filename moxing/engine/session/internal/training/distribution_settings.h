// What the settings of a training say about where it computes and how gradients travel.
#pragma once

#include <memory>

#include "moxing/engine/session/internal/run_settings.h"
#include "moxing/engine/session/starting_point.h"
#include "moxing/engine/session/training_state.h"
#include "moxing/model/training_facts.h"
#include "runtime/replicas/gradient_reduction.h"
#include "runtime/replicas/placement.h"

namespace mox::internal {

// Throws what `place` throws.
Placement placement_of(const RunSettings& settings, const StartingPoint& start,
                       const TrainingState& restored);

// The factor of scale_learning_rate.
double learning_rate_scale(const RunSettings& settings, const Placement& placement);

// What layers are told of a training with these settings.
TrainingFacts training_facts_of(const RunSettings& settings, const Placement& placement);

BucketOptions bucket_options(const RunSettings& settings, const Placement& placement);

}  // namespace mox::internal
