#include <fmt/format.h>

#include <algorithm>

#include "moxing/hooks/evaluation_data.h"
#include "moxing/hooks/hooks.h"
#include "moxing/hooks/internal/late_start_hook.h"
#include "moxing/hooks/internal/metric_monitor.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox {
namespace {

class PlateauLearningRateHook : public internal::LateStartHook {
 public:
  PlateauLearningRateHook(const MonitorOptions& options, double factor, double min_multiplier)
      : monitor_(options), factor_(factor), min_multiplier_(min_multiplier) {}
  std::string name() const override {
    return std::string(internal::kPlateauName) + monitor_.options().metric;
  }
  std::string save_state() const override { return monitor_.save_state(); }
  void restore_state(const std::string& state) override { monitor_.restore_state(state); }

 private:
  void start(Session& session) override { monitor_.start(session, "plateau_learning_rate_hook"); }
  void add(Session& session, const Metrics& metrics) override {
    monitor_.add(metrics, session.global_step());
    if (!monitor_.is_stuck()) return;
    const std::string reason = monitor_.describe();
    monitor_.start_over();
    const double before = session.learning_rate_multiplier();
    const double after = std::max(before * factor_, std::min(before, min_multiplier_));
    if (after == before) return;
    session.set_learning_rate_multiplier(after);
    log_info(fmt::format("{}: the learning rate is multiplied by {:g} from now on", reason, after));
  }

  internal::MetricMonitor monitor_;
  double factor_, min_multiplier_;
};

}  // namespace

std::shared_ptr<Hook> plateau_learning_rate_hook(const MonitorOptions& options, double factor,
                                                 double min_multiplier) {
  if (!(factor > 0 && factor < 1) || !(min_multiplier >= 0))
    throw InvalidArgument(fmt::format(
        "plateau_learning_rate_hook: factor must be in (0, 1) and min_multiplier >= 0, got {} and {}", factor,
        min_multiplier));
  return std::make_shared<PlateauLearningRateHook>(options, factor, min_multiplier);
}

}  // namespace mox
