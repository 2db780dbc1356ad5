// A run as its hooks see it, as far as that is the same for a training and for a pass over data in EVAL or
// PREDICT: which hooks there are, when they are called, how a run stops and ends.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/console/console.h"
#include "moxing/engine/session/internal/start.h"
#include "moxing/hooks/hook.h"
#include "moxing/model/model_spec.h"
#include "runtime/base/function_ref.h"

namespace mox::internal {

class HookedSession : public Session {
 public:
  // `start` outlives the session.
  HookedSession(const RunSpec& spec, Start& start, Console& console);

  // What a ModelCompiler calls for each graph. With the first one the hooks are complete.
  std::function<void(ModelBuild&, const ModelSpec&)> begin();

  // Gives the hooks the states that the checkpoint `path` has kept under their names, has their
  // after_create_session called, then `body`, then their end, also after an error, whose first one is thrown.
  void run(const std::map<std::string, std::string>& hook_states, const std::string& path,
           FunctionRef<void()> body);

  // Called within `body`.
  void before_run();
  void after_run(const StepResult& result);
  void after_evaluation(const Metrics& metrics);

  // That of the first graph, for its names and directions; its tensors are not used.
  const ModelSpec& first_spec() const { return first_spec_; }
  const std::string& stop_reason() const { return stop_reason_; }

  // Session
  ModeKeys mode() const override { return start_.settings.run_mode; }
  const std::string& log_dir() const override { return start_.settings.places.log_dir; }
  const std::string& checkpoint() const override { return start_.point.path; }
  const std::vector<std::string>& log_names() const override { return log_names_; }
  void request_stop(std::string reason) override;
  bool stop_requested() const override { return stop_requested_; }
  bool failed() const override { return failed_; }
  Console& console() override { return console_; }
  std::optional<metrics::Direction> direction(std::string_view metric) const override;
  std::vector<std::string> variable_names() const override;
  Array variable(std::string_view name) const override { return start_.store.get(name).clone(); }
  void set_variable(std::string_view name, const Array& value) override;

 protected:
  // `hooks`: the model's and the program's, of this mode. Throws InvalidArgument if one is null.
  virtual void complete_hooks(std::vector<std::shared_ptr<Hook>>& hooks);
  // Whether a value of log_info is logged.
  virtual bool is_logged(const ModelSpec&, const std::string&) const { return true; }
  // When all hooks have ended, also after an error.
  virtual void end_saving() {}
  bool is_ending() const { return ending_; }
  const std::vector<std::shared_ptr<Hook>>& hooks() const { return hooks_; }

 private:
  void begin_graph(ModelBuild& build, const ModelSpec& spec);
  // Calls Hook::`function` of each, in their order. Throws OutOfMemory, naming the hook, for memory that was
  // refused to it.
  void call_hooks(std::string_view function, FunctionRef<void(Hook&)> call) const;
  void end_hooks(std::exception_ptr error);

  const RunSpec& spec_;
  Start& start_;
  Console& console_;
  std::vector<std::shared_ptr<Hook>> hooks_;
  bool hooks_are_complete_ = false;
  size_t entered_hooks_ = 0;  // whose after_create_session was called
  ModelSpec first_spec_;
  std::vector<std::string> log_names_;
  bool stop_requested_ = false, failed_ = false, ending_ = false;
  std::string stop_reason_ = "the data of input_fn ended";
};

}  // namespace mox::internal
