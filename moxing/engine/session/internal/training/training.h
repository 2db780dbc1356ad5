// run_mode TRAIN.
#pragma once

#include <memory>
#include <optional>

#include "moxing/checkpoint/checkpoint_writer.h"
#include "moxing/console/console.h"
#include "moxing/console/stop_signal.h"
#include "moxing/engine/compile/compiled_model.h"
#include "moxing/engine/session/internal/evaluator.h"
#include "moxing/engine/session/internal/start.h"
#include "moxing/engine/session/internal/training/evaluated_data.h"
#include "moxing/engine/session/internal/training/stage_two_run.h"
#include "moxing/engine/session/internal/training/training_data.h"
#include "moxing/engine/step/replicated_step.h"
#include "moxing/engine/step/variable_scheme.h"

namespace mox::internal {

// What a training computes with. Its parts are made one after another (run_training), each from those before
// it; they end in the reverse order.
struct Training {
  Training(const RunSpec& spec, Start begun, Console& console);

  // What the step computes with. From when there is all of it.
  StepEngine engine() { return {start.placement, ranks, *compiler, *lanes, team, *scheme}; }

  const RunSpec& spec;
  Console& console;
  Communicator& ranks;
  Start start;
  Team team;  // of each lane
  EnteredTeam entered;
  std::unique_ptr<CheckpointWriter> writer;  // none if nothing is saved
  std::optional<TrainingData> data;
  std::optional<StageTwoRun> stage_two;
  std::unique_ptr<LaneThreads> lanes;
  std::unique_ptr<VariableScheme> scheme;
  std::unique_ptr<ModelCompiler> compiler;
  std::unique_ptr<ReplicatedStep> step;
  std::unique_ptr<Evaluator> evaluator;  // none if nothing is evaluated
  EvaluatedData evaluated_data;          // of the evaluator
};

// Trains to the end and prints what came of it. All ranks of the job call it together. The calling thread
// becomes the first lane. `signal`: a wish to stop, also one that comes while the model compiles. `lock` gets
// a share in the lock of log_dir, for what works there when the training has ended, by an exception, too.
RunResult run_training(const RunSpec& spec, const RunSettings& settings, Console& console,
                       const StopSignal& signal, std::shared_ptr<RunLock>* lock);

}  // namespace mox::internal
