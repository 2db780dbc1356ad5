// Follows one metric over evaluations and tells when it has stopped getting better.
#pragma once

#include <optional>
#include <string>

#include "moxing/hooks/hooks.h"

namespace mox::internal {

class MetricMonitor {
 public:
  // Throws InvalidArgument for a patience below 1 and a min_change below 0.
  explicit MetricMonitor(const MonitorOptions& options);

  // At the start of a run, behind restore_state where a checkpoint has a state: without one, what an earlier
  // run of the same hook left is forgotten. Throws FailedPrecondition, naming the hook, for a run that
  // evaluates nothing: it would wait for ever; and InvalidArgument if neither the options nor the run know
  // the direction.
  void start(const Session& session, const char* hook);

  // Takes the metric out of an evaluation; NaN and infinities are no improvement. Throws NotFound, naming the
  // metrics there are, if the metric is not among them.
  void add(const Metrics& metrics);

  // Whether `patience` evaluations in a row, or more, brought no improvement.
  bool is_stuck() const { return waited_ >= options_.patience; }
  void start_over() { waited_ = 0; }  // counts anew; the best value stays

  const MonitorOptions& options() const { return options_; }
  // "loss has not improved on 0.31 for 3 evaluations"
  std::string describe() const;

  std::string save_state() const;                // JSON
  void restore_state(const std::string& state);  // throws DataError

 private:
  MonitorOptions options_;
  metrics::Direction direction_ = metrics::Direction::kSmallerIsBetter;
  std::optional<double> best_;
  int64_t waited_ = 0;
  bool is_restored_ = false;  // for the run that starts next
};

}  // namespace mox::internal
