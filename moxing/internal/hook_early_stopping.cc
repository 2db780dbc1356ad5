#include "moxing/hooks.h"
#include "moxing/internal/metric_monitor.h"

namespace mox {
namespace {

class EarlyStoppingHook : public Hook {
 public:
  explicit EarlyStoppingHook(const MonitorOptions& options) : monitor_(options) {}
  std::string name() const override { return "early_stopping/" + monitor_.options().metric; }
  void after_evaluation(Session& session, const Metrics& metrics) override {
    if (monitor_.is_stuck_after(metrics))
      session.request_stop(monitor_.description_of_plateau());
  }
  std::string save_state() const override { return monitor_.save_state(); }
  void restore_state(const std::string& state) override { monitor_.restore_state(state); }

 private:
  internal::MetricMonitor monitor_;
};

}  // namespace

std::shared_ptr<Hook> early_stopping_hook(const MonitorOptions& options) {
  return std::make_shared<EarlyStoppingHook>(options);
}

}  // namespace mox
