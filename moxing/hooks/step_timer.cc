#include <fmt/format.h>

#include <chrono>

#include "moxing/hooks/hooks.h"
#include "runtime/base/error.h"
#include "runtime/base/seconds.h"

namespace mox {
namespace {

class StepTimerHook : public TrainingHook {
 public:
  StepTimerHook(int64_t every_n_steps, std::function<void(double, double, int64_t)> report)
      : every_n_steps_(every_n_steps), report_(std::move(report)) {}

  void after_create_session(Session&) override {
    mark_ = Clock::now();
    steps_ = samples_ = 0;
  }
  void after_run(Session& session, const StepResult& result) override {
    samples_ += result.samples();
    if (++steps_ < every_n_steps_) return;
    const auto now = Clock::now();
    const double seconds = in_seconds(now - mark_);
    report_(steps_ / seconds, samples_ / seconds, session.global_step());
    mark_ = now;
    steps_ = samples_ = 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  int64_t every_n_steps_;
  std::function<void(double, double, int64_t)> report_;
  Clock::time_point mark_;
  int64_t steps_ = 0, samples_ = 0;
};

}  // namespace

std::shared_ptr<Hook> step_timer_hook(int64_t every_n_steps,
                                      std::function<void(double, double, int64_t)> report) {
  if (every_n_steps < 1)
    throw InvalidArgument(fmt::format("step_timer_hook: every_n_steps must be >= 1, got {}", every_n_steps));
  if (!report) throw InvalidArgument("step_timer_hook: report is empty");
  return std::make_shared<StepTimerHook>(every_n_steps, std::move(report));
}

}  // namespace mox
