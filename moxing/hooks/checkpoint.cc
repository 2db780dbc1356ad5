#include <fmt/format.h>

#include <chrono>

#include "moxing/hooks/hooks.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

class CheckpointHook : public TrainingHook {
 public:
  explicit CheckpointHook(const CheckpointHookOptions& options) : options_(options) {}

  void after_create_session(Session& session) override {
    last_ = Clock::now();
    // Step 0 is saved too: a full or read-only disk shows before the training, not after an hour of it.
    session.save_checkpoint();
  }
  void after_run(Session& session, const StepResult&) override {
    const bool by_steps = options_.every_n_steps > 0 && session.global_step() % options_.every_n_steps == 0;
    const bool by_time =
        options_.every_seconds > 0 &&
        std::chrono::duration<double>(Clock::now() - last_).count() >= options_.every_seconds;
    if (!by_steps && !by_time) return;
    session.save_checkpoint();
    last_ = Clock::now();
  }
  void end(Session& session) override {
    if (!session.failed()) session.save_checkpoint();
  }

 private:
  using Clock = std::chrono::steady_clock;
  CheckpointHookOptions options_;
  Clock::time_point last_;
};

}  // namespace

std::shared_ptr<Hook> checkpoint_hook(const CheckpointHookOptions& options) {
  if (options.every_n_steps < 0 || options.every_seconds < 0)
    throw InvalidArgument(fmt::format("checkpoint_hook: intervals must be >= 0, got {} steps and {} seconds",
                                      options.every_n_steps, options.every_seconds));
  return std::make_shared<CheckpointHook>(options);
}

}  // namespace mox
