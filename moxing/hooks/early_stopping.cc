#include "moxing/hooks/evaluation_data.h"
#include "moxing/hooks/hooks.h"
#include "moxing/hooks/internal/late_start_hook.h"
#include "moxing/hooks/internal/metric_monitor.h"

namespace mox {
namespace {

class EarlyStoppingHook : public internal::LateStartHook {
 public:
  explicit EarlyStoppingHook(const MonitorOptions& options) : monitor_(options) {}
  std::string name() const override {
    return std::string(internal::kEarlyStoppingName) + monitor_.options().metric;
  }
  std::string save_state() const override { return monitor_.save_state(); }
  void restore_state(const std::string& state) override { monitor_.restore_state(state); }

 private:
  // A run that was stopped stays stopped when it is started again, until it is given more patience.
  void start(Session& session) override {
    monitor_.start(session, "early_stopping_hook");
    stop_if_stuck(session);
  }
  void add(Session& session, const Metrics& metrics) override {
    monitor_.add(metrics, session.global_step());
    stop_if_stuck(session);
  }
  void stop_if_stuck(Session& session) {
    if (monitor_.is_stuck()) session.request_stop(monitor_.describe());
  }

  internal::MetricMonitor monitor_;
};

}  // namespace

std::shared_ptr<Hook> early_stopping_hook(const MonitorOptions& options) {
  return std::make_shared<EarlyStoppingHook>(options);
}

}  // namespace mox
