#include "moxing/engine/session/internal/output_hook.h"

namespace mox::internal {
namespace {

class OutputHook : public TrainingHook {
 public:
  OutputHook(OutputFn output_fn, const Interval& interval)
      : output_fn_(std::move(output_fn)), clock_(interval, "calls of output_fn") {}

  void begin(ModelBuild& build) override { names_ = build.output_names(); }
  void after_create_session(Session& session) override { clock_.start(session); }
  void after_run(Session& session, const StepResult& result) override {
    if (names_.empty()) return;
    OutputBatch batch;
    for (const std::string& name : names_) batch.emplace_back(name, result.array(name).clone());
    pending_.push_back(std::move(batch));
    if (clock_.is_due(session)) flush();
  }
  void end(Session& session) override {
    if (!session.failed()) flush();
  }

 private:
  void flush() {
    if (pending_.empty()) return;
    output_fn_(pending_);
    pending_.clear();
  }

  OutputFn output_fn_;
  IntervalClock clock_;
  std::vector<std::string> names_;
  std::vector<OutputBatch> pending_;
};

}  // namespace

std::shared_ptr<Hook> output_hook(OutputFn output_fn, const Interval& interval) {
  return std::make_shared<OutputHook>(std::move(output_fn), interval);
}

OutputBatch copy_outputs(const CompiledModel& model) {
  OutputBatch batch;
  for (const auto& [name, tensor] : model.spec.output_info)
    batch.emplace_back(name, model.fetched(name).clone());
  return batch;
}

}  // namespace mox::internal
