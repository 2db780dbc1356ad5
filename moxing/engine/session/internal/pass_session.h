// A pass over data in EVAL or PREDICT, as hooks see it: hooks, the progress line, the end.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "moxing/console/console.h"
#include "moxing/engine/session/internal/evaluator.h"
#include "moxing/engine/session/internal/run_settings.h"

namespace mox::internal {

class PassSession : private Session, public PassObserver {
 public:
  // `global_step`: of the checkpoint.
  PassSession(const RunSpec& spec, const RunSettings& settings, VariableStore& store, Console& console,
              int64_t global_step);

  // What a ModelCompiler calls for each graph.
  std::function<void(ModelBuild&, const ModelSpec&)> begin();

  // Has the hooks' after_create_session called, then `pass`, which goes over `data`, then their end, also
  // after an error, whose first one is thrown.
  void run(const Dataset& data, const std::function<void()>& pass);

  // PassObserver: called within `pass`.
  void before_batch() override;
  bool after_batch(CompiledModel& model, int64_t samples) override;
  // Has every hook's after_evaluation called.
  void after_evaluation(const Metrics& metrics);

  double seconds() const;  // since `run` began
  int64_t samples() const override { return samples_; }
  const std::string& stop_reason() const { return stop_reason_; }

 private:
  // Session
  ModeKeys mode() const override { return settings_.run_mode; }
  int64_t global_step() const override { return global_step_; }
  int64_t first_step() const override { return global_step_; }
  int64_t last_step() const override { return global_step_; }
  double steps_per_epoch() const override { return 0; }
  const std::string& log_dir() const override { return settings_.log_dir; }
  const std::vector<std::string>& log_names() const override { return log_names_; }
  void request_stop(std::string reason) override;
  bool stop_requested() const override { return stop_requested_; }
  bool failed() const override { return failed_; }
  bool interrupted() const override { return false; }
  Console& console() override { return console_; }
  void save_checkpoint() override;
  Metrics evaluate() override;
  bool can_evaluate() const override { return false; }
  std::optional<metrics::Direction> direction(std::string_view metric) const override;
  std::vector<std::string> variable_names() const override;
  std::vector<std::string> trained_variable_names() const override { return {}; }
  Array variable(std::string_view name) const override { return store_.get(name).clone(); }
  void set_variable(std::string_view name, const Array& value) override;
  double learning_rate() const override { return 0; }
  double learning_rate_multiplier() const override { return 1; }
  void set_learning_rate_multiplier(double multiplier) override;

  [[noreturn]] void refuse(const char* what) const;
  void begin_graph(ModelBuild& build, const ModelSpec& spec);
  void end_hooks(std::exception_ptr error);
  void show_progress();

  const RunSpec& spec_;
  const RunSettings& settings_;
  VariableStore& store_;
  Console& console_;
  int64_t global_step_;
  std::vector<std::shared_ptr<Hook>> hooks_;
  bool hooks_are_complete_ = false;
  size_t entered_hooks_ = 0;  // whose after_create_session was called
  std::vector<std::string> log_names_;
  ModelSpec first_spec_;                                 // for directions; its tensors are not used
  int64_t batches_ = 0, all_batches_ = 0, samples_ = 0;  // of this rank; all_batches_ 0: not known
  bool stop_requested_ = false, failed_ = false;
  std::string stop_reason_ = "the data of input_fn ended";
  std::chrono::steady_clock::time_point start_;
};

}  // namespace mox::internal
