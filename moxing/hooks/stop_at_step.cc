#include <fmt/format.h>

#include "moxing/hooks/hooks.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

class StopAtStepHook : public TrainingHook {
 public:
  explicit StopAtStepHook(int64_t last_step) : last_step_(last_step) {}
  void after_create_session(Session& session) override { check(session); }
  void after_run(Session& session, const StepResult&) override { check(session); }

 private:
  void check(Session& session) {
    if (session.global_step() >= last_step_)
      session.request_stop(fmt::format("step {} was reached", last_step_));
  }
  int64_t last_step_;
};

}  // namespace

std::shared_ptr<Hook> stop_at_step_hook(int64_t last_step) {
  if (last_step < 1)
    throw InvalidArgument(fmt::format("stop_at_step_hook: last_step must be >= 1, got {}", last_step));
  return std::make_shared<StopAtStepHook>(last_step);
}

}  // namespace mox
