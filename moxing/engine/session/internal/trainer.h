// The training loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "moxing/checkpoint/checkpoint_writer.h"
#include "moxing/console/console.h"
#include "moxing/console/stop_signal.h"
#include "moxing/engine/compile/compiled_model.h"
#include "moxing/engine/session/internal/best_values.h"
#include "moxing/engine/session/internal/evaluator.h"
#include "moxing/engine/session/internal/run_lock.h"
#include "moxing/engine/session/internal/run_settings.h"
#include "moxing/engine/session/session_state.h"
#include "moxing/engine/step/boost_rule.h"
#include "moxing/engine/step/replicated_step.h"
#include "moxing/engine/step/variable_update.h"
#include "moxing/hooks/hook.h"
#include "runtime/replicas/lane_threads.h"
#include "runtime/replicas/placement.h"

namespace mox::internal {

class Trainer : private Session {
 public:
  // All ranks of the job make theirs together. The calling thread becomes the first lane.
  Trainer(const RunSpec& spec, const RunSettings& settings, Console& console);
  ~Trainer() override;

  RunResult run();

 private:
  // Session
  ModeKeys mode() const override { return ModeKeys::TRAIN; }
  int64_t global_step() const override { return global_step_; }
  int64_t first_step() const override { return first_step_; }
  int64_t last_step() const override { return last_step_; }
  double steps_per_epoch() const override { return steps_per_epoch_; }
  int64_t samples() const override { return samples_; }
  const std::string& log_dir() const override { return settings_.log_dir; }
  const std::vector<std::string>& log_names() const override { return log_names_; }
  void request_stop(std::string reason) override;
  bool stop_requested() const override { return stop_requested_; }
  bool failed() const override { return failed_; }
  bool interrupted() const override {
    return interrupted_ || (ranks_.size() == 1 && signal_.received() != 0);
  }
  Console& console() override { return console_; }
  void save_checkpoint() override;
  Metrics evaluate() override;
  bool can_evaluate() const override { return settings_.evaluates; }
  std::optional<metrics::Direction> direction(std::string_view metric) const override;
  std::vector<std::string> variable_names() const override;
  std::vector<std::string> trained_variable_names() const override { return trained_names_; }
  Array variable(std::string_view name) const override { return store_.get(name).clone(); }
  void set_variable(std::string_view name, const Array& value) override;
  double learning_rate() const override;
  double learning_rate_multiplier() const override { return learning_rate_multiplier_; }
  void set_learning_rate_multiplier(double multiplier) override;

  // Rank 0 keeps what the job keeps.
  bool saves() const { return ranks_.rank() == 0 && !settings_.log_dir.empty() && !settings_.print_plan; }
  void require_agreement(const CompiledModel& model) const;
  void restore_variables();
  void open_data();
  void find_last_step();
  void make_update();
  void make_stage_two();
  void prepare_stage_two(const CompiledModel& model);
  void begin_stage_two();
  void write_step_profile();
  void add_hooks(const std::vector<std::shared_ptr<Hook>>& of_model);
  void begin_graph(ModelBuild& build, const ModelSpec& spec);
  bool is_finished_already() const;
  void train();
  bool take_batches();
  void step();
  std::string describe_memory(const CompiledModel& model) const;
  void mention_left_out_step() const;
  void agree_on_stopping();
  void submit_checkpoint();
  void end_hooks(std::exception_ptr error);
  void print_summary() const;

  const RunSpec& spec_;
  RunSettings settings_;
  Communicator& ranks_;
  Console& console_;
  StopSignal signal_;              // first: a wish to stop that comes while the model compiles counts
  std::unique_ptr<RunLock> lock_;  // none if nothing is saved
  StartingPoint start_;
  SessionState restored_;
  Placement placement_;
  Team team_;  // of each lane
  EnteredTeam entered_;
  VariableStore store_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::optional<Dataset> dataset_;
  std::unique_ptr<Pipeline> pipeline_;
  std::vector<Batch> batches_;  // of the step under way: one for each logical replica of this process
  std::unique_ptr<LaneThreads> lanes_;
  std::unique_ptr<ModelCompiler> compiler_;
  std::unique_ptr<VariableUpdate> update_;
  std::unique_ptr<ReplicatedStep> step_;
  std::unique_ptr<boost::StageTwo>
      stage_two_;  // none: the optimizer changes the variables from the first step to the last
  std::unique_ptr<BoostRule> boost_rule_;
  std::optional<boost::StageTwo::Kept> kept_stage_two_;  // of the checkpoint, until the stage is prepared
  std::unique_ptr<Evaluator> evaluator_;
  std::vector<std::shared_ptr<Hook>> hooks_;
  size_t entered_hooks_ = 0;  // whose after_create_session was called
  bool hooks_are_complete_ = false;

  int64_t global_step_ = 0, first_step_ = 0, last_step_ = 0, samples_ = 0;
  // Of input_fn's data: those that a step takes, and those that all steps have taken.
  int64_t step_elements_ = 0, elements_taken_ = 0;
  double steps_per_epoch_ = 0;
  int64_t saved_step_ = -1;
  bool in_step_ = false,
       save_is_due_ = false;  // a save that a hook asks for within a step waits for the step's end
  double learning_rate_multiplier_ = 1;
  double learning_rate_scale_ = 1;  // scale_learning_rate
  bool stop_requested_ = false, failed_ = false, ending_ = false, in_after_evaluation_ = false;
  bool interrupted_ = false;  // by a signal that all ranks know of
  std::string stop_reason_;
  std::vector<std::string> log_names_;
  std::vector<std::optional<metrics::Direction>> log_directions_;  // of log_names_
  Evaluation last_evaluation_;
  std::vector<std::string> trained_names_;

  double data_seconds_ = 0, compute_seconds_ = 0, total_seconds_ = 0;
  BestValues best_batches_;
  std::shared_ptr<EvaluationSummaryHook> evaluation_summary_ = std::make_shared<EvaluationSummaryHook>();
};

}  // namespace mox::internal
