// A pass over data in EVAL or PREDICT, as hooks see it: hooks, the progress line, the end.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "moxing/engine/session/internal/evaluator.h"
#include "moxing/engine/session/internal/hooked_session.h"

namespace mox::internal {

class PassSession : public HookedSession, public PassObserver {
 public:
  PassSession(const RunSpec& spec, Start& start, Console& console)
      : HookedSession(spec, start, console), start_(start) {}

  // HookedSession::run, of `pass`, which goes over `data`. Throws FailedPrecondition if a hook asks to stop
  // before it.
  void run(const Dataset& data, FunctionRef<void()> pass);
  double seconds() const;  // since `run` began

  // In EVAL, when it is done.
  void set_evaluated_samples(int64_t samples) { evaluated_samples_ = samples; }
  // For the hooks' end: the pass ends before its data, since a signal asks for it.
  void interrupt() { is_interrupted_ = true; }

  // PassObserver: called within `pass`.
  void before_batch() override { before_run(); }
  bool after_batch(CompiledModel& model, int64_t samples) override;

  // Session. What belongs to training is refused.
  int64_t global_step() const override { return start_.restored.global_step; }
  int64_t first_step() const override { return global_step(); }
  int64_t last_step() const override { return global_step(); }
  double steps_per_epoch() const override { return 0; }
  double passes(int64_t) const override { return 0; }
  int64_t samples() const override { return samples_; }
  void request_stop(std::string reason) override;
  bool interrupted() const override { return is_interrupted_; }
  void save_checkpoint() override;
  Metrics evaluate() override;
  bool can_evaluate() const override { return false; }
  bool evaluates_between_steps() const override { return false; }
  void require_evaluated(std::string_view follower, std::string_view metric) override;
  int64_t evaluated_samples() const override { return evaluated_samples_; }
  std::vector<std::string> trained_variable_names() const override { return {}; }
  std::vector<std::string> restored_variable_names() const override { return variable_names(); }
  double learning_rate() const override { return 0; }
  double learning_rate_multiplier() const override { return 1; }
  void set_learning_rate_multiplier(double multiplier) override;

 private:
  // In EVAL a metric of the name takes the place of a value.
  bool is_logged(const ModelSpec& spec, const std::string& name) const override;
  [[noreturn]] void refuse(const char* what) const;
  void show_progress();

  const Start& start_;
  bool is_interrupted_ = false;
  int64_t evaluated_samples_ = 0;
  int64_t batches_ = 0, all_batches_ = 0, samples_ = 0;  // of this rank; all_batches_ 0: not known
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace mox::internal
