// What a run begins with: found out, in a fixed order, before anything is computed.
#pragma once

#include <memory>

#include "moxing/engine/session/internal/run_lock.h"
#include "moxing/engine/session/internal/run_settings.h"
#include "moxing/engine/session/starting_point.h"
#include "moxing/engine/session/training_state.h"
#include "moxing/model/variable_store.h"
#include "runtime/replicas/placement.h"

namespace mox::internal {

struct Start {
  RunSettings settings;           // settled: arithmetic, num_devices and seed are what the run has
  std::shared_ptr<RunLock> lock;  // of log_dir; none if the run saves nothing
  StartingPoint point;
  // Of a training that is continued, else as it begins; of a pass global_step and data_cursor alone.
  TrainingState restored;
  Placement placement;             // of a training
  VariableStore store{0};          // holds what was restored
  double learning_rate_scale = 1;  // scale_learning_rate

  bool is_continued() const { return point.kind == StartingPoint::Kind::kContinued; }
  // Rank 0 of a training keeps what the job keeps.
  bool saves() const { return lock != nullptr; }
};

// All ranks call it together. In this order: locks log_dir, so that nobody changes what is found there; finds
// and reads the checkpoint to start from (print_plan needs no values); settles the arithmetic; chooses the
// number of devices, where that is to be measured; places; takes the seed of the run that is continued;
// restores. Throws what RunLock, find_starting_point, from_checkpoint_state, choose_devices and place throw.
Start start_training(const RunSpec& spec, const RunSettings& settings);

// For EVAL and PREDICT: settles the arithmetic; restores the checkpoint that the settings name, unless the
// plan is all that is asked for. Throws ConfigError if there is none.
Start start_pass(const RunSettings& settings);

}  // namespace mox::internal
