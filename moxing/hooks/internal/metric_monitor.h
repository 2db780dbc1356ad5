// Follows one metric over evaluations and tells when it has stopped getting better.
#pragma once

#include <optional>
#include <string>

#include "moxing/hooks/hooks.h"

namespace mox::internal {

// Which way `metric`, followed by what is called `follower` in messages, gets better: as the program says, or
// as the run knows. Throws ConfigError for a run that evaluates nothing or not this metric, and
// InvalidArgument if neither knows.
metrics::Direction direction_to_follow(Session& session, std::string_view follower, const std::string& metric,
                                       std::optional<bool> larger_is_better);

// The value of that name, or its mean of batches. Throws ConfigError, naming the metrics there are, if it is
// not among them.
double value_of(const Metrics& metrics, const std::string& name);

class MetricMonitor {
 public:
  // Throws InvalidArgument for a patience below 1 and a min_change below 0.
  explicit MetricMonitor(const MonitorOptions& options);

  // At the start of a run, behind restore_state where a checkpoint has a state: without one, what an earlier
  // run of the same hook left is forgotten, and so is the state where its evaluations were of other data.
  // Throws ConfigError, naming the hook, for a run that evaluates nothing, not this metric, or nothing before
  // its end: it would wait for ever; and InvalidArgument if neither the options nor the run
  // know the direction.
  void start(Session& session, const char* hook);

  // Takes the metric out of an evaluation at `step`; NaN and infinities are no improvement. A further
  // evaluation at the same step, of a restored state or after a resume, does not count. Throws
  // what value_of throws.
  void add(const Metrics& metrics, int64_t step);

  // Whether `patience` evaluations in a row, or more, brought no improvement.
  bool is_stuck() const { return waited_ >= options_.patience; }
  void start_over() { waited_ = 0; }  // counts anew; the best value stays

  const MonitorOptions& options() const { return options_; }
  // "loss has not improved on 0.31 (global step 40) for 3 evaluations"
  std::string describe() const;

  std::string save_state() const;                // JSON
  void restore_state(const std::string& state);  // throws DataError

 private:
  MonitorOptions options_;
  metrics::Direction direction_ = metrics::Direction::kSmallerIsBetter;
  std::optional<double> best_;
  int64_t best_step_ = 0, waited_ = 0;
  int64_t counted_step_ = -1;  // of the last evaluation that counted
  bool is_restored_ = false;   // for the run that starts next
};

}  // namespace mox::internal
