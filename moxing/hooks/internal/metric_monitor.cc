#include "moxing/hooks/internal/metric_monitor.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace mox::internal {

MetricMonitor::MetricMonitor(const MonitorOptions& options) : options_(options) {
  if (options.patience < 1)
    throw InvalidArgument(
        fmt::format("a monitor's patience must be >= 1 evaluation, got {}", options.patience));
  if (!(options.min_change >= 0))
    throw InvalidArgument(fmt::format("a monitor's min_change must be >= 0, got {}", options.min_change));
  if (options.larger_is_better.value_or(false)) direction_ = metrics::Direction::kLargerIsBetter;
}

void MetricMonitor::start(const Session& session, const char* hook) {
  if (!is_restored_) {
    best_.reset();
    waited_ = 0;
  }
  is_restored_ = false;
  if (!session.can_evaluate())
    throw FailedPrecondition(
        fmt::format("{} follows '{}' over evaluations, but this run has none: set inter_mode to EVAL and "
                    "eval_every_n_steps to the steps between two of them",
                    hook, options_.metric));
  if (options_.larger_is_better) return;
  const auto known = session.direction(options_.metric);
  if (!known)
    throw InvalidArgument(
        fmt::format("{} follows '{}', of which it is not known whether larger or smaller is better: set "
                    "larger_is_better, or name it in ModelSpec::directions",
                    hook, options_.metric));
  direction_ = *known;
}

void MetricMonitor::add(const Metrics& metrics) {
  const double* value = nullptr;
  std::string names;
  for (const auto& [name, number] : metrics) {
    if (name == options_.metric) value = &number;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (!value)
    throw NotFound(fmt::format("the monitored metric '{}' is not in the evaluation, which has: {}",
                               options_.metric, names));
  const double change =
      direction_ == metrics::Direction::kLargerIsBetter ? options_.min_change : -options_.min_change;
  const bool better =
      std::isfinite(*value) && (!best_ || metrics::is_better(direction_, *value, *best_ + change));
  if (better) best_ = *value;
  waited_ = better ? 0 : waited_ + 1;
}

std::string MetricMonitor::describe() const {
  return fmt::format("{} has {} for {} evaluations", options_.metric,
                     best_ ? fmt::format("not improved on {:g}", *best_) : "not been a finite number",
                     waited_);
}

std::string MetricMonitor::save_state() const {
  nlohmann::json state = {{"waited", waited_}};
  if (best_) state["best"] = *best_;
  return state.dump();
}

void MetricMonitor::restore_state(const std::string& state) {
  try {
    const auto parsed = nlohmann::json::parse(state);
    waited_ = parsed.at("waited").get<int64_t>();
    best_ = parsed.contains("best") ? std::optional(parsed.at("best").get<double>()) : std::nullopt;
    is_restored_ = true;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(
        fmt::format("the checkpoint's state of the monitor of '{}' is not what a monitor saves: {}",
                    options_.metric, error.what()));
  }
}

}  // namespace mox::internal
