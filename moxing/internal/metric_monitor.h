// Follows one metric over evaluations and tells when it has stopped getting better.
#pragma once

#include <optional>
#include <string>

#include "moxing/hooks.h"

namespace mox::internal {

class MetricMonitor {
 public:
  // Throws InvalidArgument for a patience below 1 and a min_change below 0.
  explicit MetricMonitor(const MonitorOptions& options);

  // Takes the metric out of an evaluation. True if `patience` evaluations in a row brought no improvement; the count then
  // begins anew. Throws NotFound, naming the metrics there are, if the metric is not among them.
  bool is_stuck_after(const Metrics& metrics);

  const MonitorOptions& options() const { return options_; }
  // "loss has not improved on 0.25 for 3 evaluations", for the moment when is_stuck_after is true.
  std::string description_of_plateau() const;

  std::string save_state() const;                // JSON
  void restore_state(const std::string& state);  // throws DataError

 private:
  MonitorOptions options_;
  std::optional<double> best_;
  int64_t waited_ = 0;
};

}  // namespace mox::internal
