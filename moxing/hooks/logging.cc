#include <fmt/format.h>

#include <chrono>

#include "moxing/console/console.h"
#include "moxing/hooks/hooks.h"
#include "runtime/base/error.h"
#include "runtime/base/seconds.h"

namespace mox {
namespace {

class LoggingHook : public TrainingHook {
 public:
  explicit LoggingHook(const LoggingHookOptions& options)
      : options_(options),
        clock_({.steps = options.every_n_steps,
                .seconds = options.every_seconds,
                .epochs = options.every_n_epochs},
               "log lines") {}

  void after_create_session(Session& session) override {
    clock_.start(session);
    mark_ = Clock::now();
    steps_ = samples_ = 0;
  }

  void after_run(Session& session, const StepResult& result) override {
    samples_ += result.samples();
    ++steps_;
    const int64_t step = session.global_step();
    const bool first = step == session.first_step() + 1;
    const bool is_due = clock_.is_due(session);
    if (first || is_due) {
      measure();
      NamedValues values;
      for (const std::string& name : session.log_names()) values.emplace_back(name, result.number(name));
      session.console().print(
          format_step_line(step - session.first_step(), step, samples_per_second_, values));
    }
    if (options_.live_line && !session.log_names().empty())
      session.console().show_progress({.global_step = step,
                                       .max_global_step = session.last_step(),
                                       .steps_per_second = steps_per_second_,
                                       .samples_per_second = samples_per_second_,
                                       .loss = result.number(session.log_names().front())});
  }

  void end(Session& session) override { session.console().remove_progress(); }

 private:
  using Clock = std::chrono::steady_clock;

  void measure() {
    const auto now = Clock::now();
    const double seconds = in_seconds(now - mark_);
    steps_per_second_ = steps_ / seconds;
    samples_per_second_ = samples_ / seconds;
    mark_ = now;
    steps_ = samples_ = 0;
  }

  LoggingHookOptions options_;
  IntervalClock clock_;
  Clock::time_point mark_;
  int64_t steps_ = 0, samples_ = 0;  // since mark_
  double steps_per_second_ = 0, samples_per_second_ = 0;
};

}  // namespace

std::shared_ptr<Hook> logging_hook(const LoggingHookOptions& options) {
  if (options.every_n_steps < 1 && options.every_seconds <= 0 && options.every_n_epochs < 1)
    throw InvalidArgument(
        fmt::format("logging_hook: every_n_steps must be >= 1, got {}", options.every_n_steps));
  return std::make_shared<LoggingHook>(options);
}

}  // namespace mox
