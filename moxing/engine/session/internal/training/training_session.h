// A training as its hooks see it.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "moxing/console/stop_signal.h"
#include "moxing/engine/session/internal/hooked_session.h"
#include "moxing/engine/session/internal/training/best_values.h"
#include "moxing/engine/session/internal/training/kept_for_good.h"
#include "moxing/engine/session/internal/training/training.h"
#include "moxing/hooks/evaluation_data.h"
#include "moxing/hooks/hook_states.h"

namespace mox::internal {

class TrainingSession : public HookedSession, public HookStates, public EvaluationData {
 public:
  // At the step from which `training` goes on.
  TrainingSession(Training& training, const StopSignal& signal);

  // Before the first step: the evaluation that an earlier start has not brought to its end.
  void make_up_for_evaluation();

  // What the loop tells of a step.
  void begin_step();  // calls the hooks' before_run
  void count_step(int64_t samples);
  void end_step(const StepResult& result);  // calls their after_run, and saves if one has asked for it
  // A sample that cannot be read ends the run between two steps: what was trained so far is kept, `why` is
  // said, and the run goes on from there once the sample is mended. In a job the rank that saves waits until
  // that is done.
  void save_before_failing(const char* why);
  // Sets whether a signal that all ranks know of has asked to end.
  void set_interrupted(bool interrupted) { interrupted_ = interrupted; }
  // Those that the compiled model has gradients of, and those that it has from a checkpoint.
  void set_trained_variables(std::vector<std::string> names);
  void set_restored_variables(std::vector<std::string> names) { restored_names_ = std::move(names); }

  // The factor of the learning rate in the next step, beside the schedule.
  double learning_rate_factor() const;
  const Evaluation& last_evaluation() const { return last_evaluation_; }
  const BestValues& evaluations() const { return evaluation_summary_->values(); }
  std::string_view signal_name() const { return signal_.name(); }
  int received_signal() const { return signal_.received(); }
  const std::atomic<int>& wish_to_stop() const { return signal_.wish(); }

  std::map<std::string, std::string> hook_states() const override;
  const std::optional<std::string>& evaluation_data() const override { return training_.evaluated_data.mark; }
  bool evaluation_data_are_others() const override { return training_.evaluated_data.are_others; }

  // Session
  int64_t global_step() const override { return global_step_; }
  int64_t first_step() const override { return training_.start.restored.global_step; }
  int64_t last_step() const override { return training_.data->last_step(); }
  double steps_per_epoch() const override { return training_.data->steps_per_epoch(); }
  double passes(int64_t step) const override { return training_.data->passes(step); }
  int64_t samples() const override { return samples_; }
  bool interrupted() const override;
  void save_checkpoint() override;
  Metrics evaluate() override;
  bool can_evaluate() const override { return training_.start.settings.evaluates; }
  bool evaluates_between_steps() const override {
    return can_evaluate() && std::ranges::any_of(hooks(), [](const auto& hook) { return hook->evaluates(); });
  }
  void require_evaluated(std::string_view follower, std::string_view metric) override;
  int64_t evaluated_samples() const override { return last_evaluation_.samples; }
  std::optional<metrics::Direction> direction(std::string_view metric) const override;
  std::vector<std::string> trained_variable_names() const override { return trained_names_; }
  std::vector<std::string> restored_variable_names() const override { return restored_names_; }
  void set_variable(std::string_view name, const Array& value) override;
  double learning_rate() const override;
  double learning_rate_multiplier() const override { return learning_rate_multiplier_; }
  void set_learning_rate_multiplier(double multiplier) override;

 private:
  void complete_hooks(std::vector<std::shared_ptr<Hook>>& hooks) override;
  void end_saving() override;
  void submit_checkpoint();
  void copy_arrays(Checkpoint& checkpoint) const;  // what is written while the training goes on
  void require_followed();
  TrainingState state() const;

  Training& training_;
  const StopSignal& signal_;
  int64_t global_step_, samples_ = 0;
  int64_t saved_step_ = -1;
  KeptForGood kept_for_good_;
  bool in_step_ = false;
  bool save_is_due_ = false;  // a save that a hook asks for within a step waits for the step's end
  double learning_rate_multiplier_;
  bool evaluation_is_due_ = false;  // of this step: it has begun, and has no result
  bool in_after_evaluation_ = false, interrupted_ = false;
  std::vector<std::string> trained_names_, restored_names_;
  std::map<std::string, std::string> followed_;  // numbers of evaluations, and who follows each
  Evaluation last_evaluation_;
  std::shared_ptr<EvaluationSummaryHook> evaluation_summary_ = std::make_shared<EvaluationSummaryHook>();
};

}  // namespace mox::internal
