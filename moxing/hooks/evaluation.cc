#include <fmt/format.h>

#include "moxing/console/console.h"
#include "moxing/hooks/evaluation_line.h"
#include "moxing/hooks/hooks.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

class EvaluationHook : public TrainingHook {
 public:
  explicit EvaluationHook(const Interval& interval)
      : clock_(interval, "evaluation", true), is_regular_(interval.any()) {}

  bool evaluates() const override { return is_regular_; }
  void after_create_session(Session& session) override {
    if (!session.can_evaluate()) throw Conflict("evaluation_hook needs a run with inter_mode EVAL");
    clock_.start(session);
    evaluated_step_ = -1;  // of an earlier run
  }
  void after_run(Session& session, const StepResult&) override {
    if (clock_.is_due(session)) evaluate(session);
  }
  void end(Session& session) override {
    if (!session.failed() && !session.interrupted() && evaluated_step_ != session.global_step())
      evaluate(session);
  }

 private:
  void evaluate(Session& session) {
    evaluated_step_ = session.global_step();
    session.console().print(internal::evaluation_line(evaluated_step_, session.evaluate()),
                            Console::Style::kStrong);
    clock_.done();  // seconds are those of training
  }

  IntervalClock clock_;
  bool is_regular_;
  int64_t evaluated_step_ = -1;
};

}  // namespace

std::string internal::evaluation_line(int64_t step, const Metrics& metrics) {
  std::string line = fmt::format("evaluation at global step {}:", step);
  for (const auto& [name, value] : metrics) line += fmt::format("  {}: {}", name, format_value(value));
  return line;
}

std::shared_ptr<Hook> evaluation_hook(int64_t every_n_steps) {
  if (every_n_steps < 0)
    throw InvalidArgument(fmt::format("evaluation_hook: every_n_steps must be >= 0, got {}", every_n_steps));
  return std::make_shared<EvaluationHook>(Interval{.steps = every_n_steps});
}
std::shared_ptr<Hook> evaluation_hook(const Interval& interval) {
  return std::make_shared<EvaluationHook>(interval);
}

}  // namespace mox
