#include "moxing/engine/session/internal/pass_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/seconds.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

class PassResult : public StepResult {
 public:
  PassResult(const CompiledModel& model, int64_t samples) : model_(model), samples_(samples) {}
  const Array& array(std::string_view name) const override { return model_.fetched(name); }
  int64_t samples() const override { return samples_; }

 private:
  const CompiledModel& model_;
  int64_t samples_;
};

}  // namespace

bool PassSession::is_logged(const ModelSpec& spec, const std::string& name) const {
  return mode() != ModeKeys::EVAL ||
         std::ranges::none_of(spec.metrics, [&](const auto& metric) { return metric.first == name; });
}

void PassSession::run(const Dataset& data, FunctionRef<void()> pass) {
  begun_ = std::chrono::steady_clock::now();
  if (data.cardinality() > 0) all_batches_ = (data.cardinality() + job().size() - 1) / job().size();
  HookedSession::run({}, "", [&] {
    // What earlier runs have kept is better than the results of nothing.
    if (stop_requested())
      throw FailedPrecondition(
          fmt::format("a hook has asked to stop ({}) before the first batch of run_mode {}: there is nothing "
                      "to keep, and earlier results are as they were. Let it ask in after_run, or leave it "
                      "out of this mode (Hook::takes_part_in)",
                      stop_reason(), to_string(mode())));
    pass();
    if (stop_requested() && !interrupted() && batches_ != all_batches_)
      log_warning(fmt::format(
          "a hook has asked to stop ({}) after {} samples: what run_mode {} gives is of these alone. "
          "Let a hook that is for trainings derive from mox::TrainingHook",
          stop_reason(), samples_, to_string(mode())));
  });
}

bool PassSession::after_batch(CompiledModel& model, int64_t samples) {
  ++batches_;
  samples_ += samples;
  after_run(PassResult(model, samples));
  show_progress();
  return !stop_requested();
}

double PassSession::seconds() const { return seconds_since(begun_); }

void PassSession::show_progress() {
  const double passed = std::max(seconds(), 1e-9);
  console().show_progress({.global_step = batches_,
                           .max_global_step = all_batches_,
                           .steps_per_second = static_cast<double>(batches_) / passed,
                           .samples_per_second = static_cast<double>(samples_) / passed});
}

void PassSession::request_stop(std::string reason) {
  if (job().size() > 1)
    throw FailedPrecondition(fmt::format(
        "a hook has asked to stop ({}) in run_mode {} of a job of {} processes, which ends with its "
        "data: set {}_steps instead",
        reason, to_string(mode()), job().size(), to_string(mode())));
  HookedSession::request_stop(std::move(reason));
}

void PassSession::refuse(const char* what) const {
  throw FailedPrecondition(
      fmt::format("a hook has called {} in run_mode {}, which trains nothing; let it look at "
                  "Session::mode(), or override Hook::takes_part_in",
                  what, to_string(mode())));
}

void PassSession::save_checkpoint() { refuse("Session::save_checkpoint"); }
Metrics PassSession::evaluate() { refuse("Session::evaluate"); }
void PassSession::require_evaluated(std::string_view, std::string_view) {
  refuse("Session::require_evaluated");
}
void PassSession::set_learning_rate_multiplier(double) { refuse("Session::set_learning_rate_multiplier"); }

}  // namespace mox::internal
