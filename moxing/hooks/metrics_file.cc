#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "moxing/hooks/hooks.h"
#include "moxing/hooks/internal/metrics_log.h"
#include "moxing/hooks/metric_names.h"
#include "moxing/job/distributed.h"
#include "moxing/json/append_member.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/seconds.h"

namespace mox {
namespace {

using internal::kEvaluationField;
using internal::kLearningRateField;
using internal::kSamplesField;
using internal::kSpeedField;
using internal::kStepField;

class MetricsFileHook : public TrainingHook {
 public:
  explicit MetricsFileHook(const Interval& interval) : clock_(interval, "records of the metrics") {}

  void after_create_session(Session& session) override {
    if (std::exchange(ended_, false))
      log_.close();  // of the run before, which may have been the same directory's
    open(session);
    clock_.start(session);
    mark_ = Clock::now();
  }

  void before_run(Session& session) override { learning_rate_ = session.learning_rate(); }

  void after_run(Session& session, const StepResult& result) override {
    samples_ += result.samples();
    if (!clock_.is_due(session)) return;
    const auto now = Clock::now();
    const double seconds = in_seconds(now - mark_);
    nlohmann::ordered_json line;
    line[kStepField] = session.global_step();
    line[kSpeedField] = samples_ / seconds;
    line[kLearningRateField] = learning_rate_;
    for (const std::string& name : session.log_names()) append_member(line, name, result.number(name));
    write(line);
    mark_ = now;
    samples_ = 0;
  }

  void after_evaluation(Session& session, const Metrics& metrics) override {
    open(session);  // a hook before this one may have evaluated in its after_create_session
    if (std::exchange(evaluated_step_, session.global_step()) == session.global_step()) return;
    nlohmann::ordered_json line;
    line[kStepField] = session.global_step();
    line[kEvaluationField] = true;
    line[kSamplesField] = session.evaluated_samples();
    for (const auto& [name, value] : metrics) append_member(line, name, value);
    write(line);
  }

  // A hook that comes after this one may evaluate in its own end, so the file stays open.
  void end(Session&) override { ended_ = true; }

 private:
  using Clock = std::chrono::steady_clock;

  // Once a run, and on rank 0, which keeps what the job keeps.
  void open(Session& session) {
    if (rank() != 0) return;
    if (session.log_dir().empty()) throw Conflict("metrics_file_hook needs a run with a log_dir");
    const std::string path = session.log_dir() + "/metrics.jsonl";
    if (log_.is_open() && path == log_.path()) return;
    samples_ = 0;
    log_.open(path, session.global_step());
    evaluated_step_ = log_.evaluated_step();
  }

  void write(const nlohmann::ordered_json& line) {
    if (log_.is_open()) log_.write(line);  // else of another rank
  }

  IntervalClock clock_;
  internal::MetricsLog log_;
  Clock::time_point mark_;
  int64_t samples_ = 0;
  double learning_rate_ = 0;     // of the step
  int64_t evaluated_step_ = -1;  // of the last line about an evaluation
  bool ended_ = false;           // the run that the open file belongs to
};

}  // namespace

std::shared_ptr<Hook> metrics_file_hook(int64_t every_n_steps) {
  if (every_n_steps < 1)
    throw InvalidArgument(
        fmt::format("metrics_file_hook: every_n_steps must be >= 1, got {}", every_n_steps));
  return metrics_file_hook(Interval{.steps = every_n_steps});
}
std::shared_ptr<Hook> metrics_file_hook(const Interval& interval) {
  if (!interval.any()) throw InvalidArgument("metrics_file_hook: the interval is empty");
  return std::make_shared<MetricsFileHook>(interval);
}

}  // namespace mox
