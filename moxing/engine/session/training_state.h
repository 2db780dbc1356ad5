// What a checkpoint of a training holds beside the arrays.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/engine/step/loss_scale.h"
#include "moxing/optimizers/optimizer.h"
#include "ops/processor/instruction_set.h"

namespace mox::internal {

// What identifies the memory that an optimizer keeps: its name and its slots.
struct OptimizerIdentity {
  std::string name;
  std::vector<std::string> slots;
  bool operator==(const OptimizerIdentity&) const = default;
};
OptimizerIdentity optimizer_identity(const Optimizer& optimizer);

struct TrainingState {
  int64_t global_step = 0;
  OptimizerIdentity optimizer;
  uint64_t seed = 0;
  int threads = 0;  // of the team that computed it: of each replica
  int64_t logical_replicas = 1;
  int devices = 0;                                // of a process; 0: not known
  int process_threads = 0;                        // that its devices share; 0: not known
  std::string processor;                          // what computed, of rank 0 (computed_by); "": not known
  std::optional<InstructionSet> instruction_set;  // of all ranks, if it is known
  std::string arithmetic;                         // see KeptArithmetic
  double learning_rate_multiplier = 1;
  LossScaleState loss_scale;
  std::map<std::string, int64_t> missed_updates;  // ParameterUpdater::missed_updates
  std::string data_cursor;                        // "" if the data begins anew
  // Of input_fn's data, those that all steps so far have taken: the cursor's place, counted. Without a value
  // (which no checkpoint had before) all steps had the logical replicas of the last one.
  std::optional<int64_t> elements_taken;
  std::optional<std::string> evaluation_data;      // content_mark of the evaluations' so far, if it is known
  std::optional<int64_t> evaluation_due;           // the step, if that is saved because its evaluation failed
  std::map<std::string, std::string> hook_states;  // by Hook::name
  std::string stage_two;  // of dimension-reduced training, JSON text; "" where there is none

  int64_t updates() const { return global_step - loss_scale.skipped_steps; }
};

std::map<std::string, std::string> to_checkpoint_state(const TrainingState& state);
// Throws DataError, naming `path`, for a state that a run cannot have written.
TrainingState from_checkpoint_state(const Checkpoint& checkpoint, const std::string& path);

// Throws FailedPrecondition, naming both, unless a run of the checkpoint `path`, trained with `before`, can
// go on with `now`: another rule would find none of the memory that it needs, and steps that it has not done.
void require_same_optimizer(const OptimizerIdentity& before, const Optimizer& now, const std::string& path);

}  // namespace mox::internal
