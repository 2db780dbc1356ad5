// Follows one metric over evaluations and tells when it has stopped getting better.
#pragma once

#include <optional>
#include <string>

#include "moxing/hooks.h"

namespace mox::internal {

class MetricMonitor {
 public:
  // Throws InvalidArgument for a patience below 1.
  explicit MetricMonitor(const MonitorOptions& options);

  // Takes the metric out of an evaluation. True if `patience` evaluations in a row brought no improvement; the count then
  // begins anew. Throws NotFound, naming the metrics there are, if the metric is not among them.
  bool is_stuck_after(const Metrics& metrics);

  const MonitorOptions& options() const { return options_; }
  std::optional<double> best() const { return best_; }

  std::string save_state() const;                // JSON
  void restore_state(const std::string& state);  // throws DataError

 private:
  MonitorOptions options_;
  std::optional<double> best_;
  int64_t waited_ = 0;
};

}  // namespace mox::internal
