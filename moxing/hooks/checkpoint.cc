#include "moxing/hooks/hooks.h"

namespace mox {
namespace {

class CheckpointHook : public TrainingHook {
 public:
  explicit CheckpointHook(const CheckpointHookOptions& options)
      : clock_({.steps = options.every_n_steps,
                .seconds = options.every_seconds,
                .epochs = options.every_n_epochs},
               "checkpoints") {}

  void after_create_session(Session& session) override {
    clock_.start(session);
    // Step 0 is saved too: a full or read-only disk shows before the training, not after an hour of it.
    session.save_checkpoint();
  }
  void after_run(Session& session, const StepResult&) override {
    if (!clock_.is_due(session)) return;
    session.save_checkpoint();
    clock_.done();
  }
  void end(Session& session) override {
    if (!session.failed()) session.save_checkpoint();
  }

 private:
  IntervalClock clock_;
};

}  // namespace

std::shared_ptr<Hook> checkpoint_hook(const CheckpointHookOptions& options) {
  return std::make_shared<CheckpointHook>(options);
}

}  // namespace mox
