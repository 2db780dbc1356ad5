// Dimension-reduced training within a run (moxing/boost/stage_two.h): when its second stage begins, and what
// of it checkpoints keep.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "moxing/boost/stage_two.h"
#include "moxing/engine/session/internal/start.h"
#include "moxing/engine/session/internal/training/training_data.h"
#include "moxing/engine/step/boost_rule.h"
#include "moxing/engine/step/replicated_step.h"

namespace mox::internal {

class StageTwoRun {
 public:
  // Takes its part out of the slots that `start` has found. Throws InvalidArgument for a scheme of updates
  // that has several copies of the variables, and what StageTwo throws.
  StageTwoRun(Start& start, Communicator& ranks);

  // Null if the optimizer changes the variables from the first step to the last.
  boost::StageTwo* stage() const { return stage_.get(); }

  // Of a model whose variables are there. Throws what StageTwo::prepare throws.
  void prepare(const CompiledModel& model, Start& start, const TrainingData& data);
  // Before the step that follows `global_step`: begins the stage if it is due.
  void begin_if_due(int64_t global_step, const RunSettings& settings, const StepEngine& engine,
                    ReplicatedStep& step);

  std::string state() const { return stage_ ? stage_->save_state() : ""; }
  void add_slots(std::vector<NamedArray>* slots) const;

 private:
  std::unique_ptr<boost::StageTwo> stage_;
  std::unique_ptr<BoostRule> rule_;
  std::optional<boost::StageTwo::Kept> kept_;  // of the checkpoint, until the stage is prepared
  std::string snapshots_run_;                  // that the checkpoint names
};

}  // namespace mox::internal
