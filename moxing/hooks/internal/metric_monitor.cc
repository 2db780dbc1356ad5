#include "moxing/hooks/internal/metric_monitor.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "moxing/hooks/evaluation_data.h"
#include "moxing/hooks/metric_names.h"
#include "moxing/json/parse_json.h"
#include "moxing/json/whole_number.h"
#include "runtime/base/error.h"

namespace mox::internal {

namespace {

// What the values are taken to need at most. There are four, and longer texts are no monitor's.
constexpr size_t kMostTimesOfMonitor = 12;

}  // namespace

metrics::Direction direction_to_follow(Session& session, std::string_view follower, const std::string& metric,
                                       std::optional<bool> larger_is_better) {
  if (!session.can_evaluate())
    throw ConfigError(
        fmt::format("{} follows '{}' over evaluations, but this run has none: set inter_mode to EVAL and "
                    "eval_every_n_steps to the steps between two of them",
                    follower, metric));
  session.require_evaluated(follower, metric);
  if (larger_is_better)
    return *larger_is_better ? metrics::Direction::kLargerIsBetter : metrics::Direction::kSmallerIsBetter;
  const auto known = session.direction(metric);
  if (!known)
    throw InvalidArgument(
        fmt::format("{} follows '{}', of which it is not known whether larger or smaller is better: set "
                    "larger_is_better (mode: max or min), or name it in ModelSpec::directions",
                    follower, metric));
  return *known;
}

double value_of(const Metrics& metrics, const std::string& name) {
  const std::string of_batches = name + std::string(kMeanOfBatches);
  std::string names;
  for (const auto& [known, value] : metrics) {
    if (known == name || known == of_batches) return value;
    names += (names.empty() ? "" : ", ") + known;
  }
  throw ConfigError(
      fmt::format("the monitored metric '{}' is not in the evaluation, which has: {}; follow one of these "
                  "(keep_best.metric, early_stopping.metric, plateau.metric, or the options of the hook)",
                  name, names));
}

MetricMonitor::MetricMonitor(const MonitorOptions& options) : options_(options) {
  if (options.patience < 1)
    throw InvalidArgument(
        fmt::format("a monitor's patience must be >= 1 evaluation, got {}", options.patience));
  if (!(options.min_change >= 0))
    throw InvalidArgument(fmt::format("a monitor's min_change must be >= 0, got {}", options.min_change));
  if (options.larger_is_better.value_or(false)) direction_ = metrics::Direction::kLargerIsBetter;
}

void MetricMonitor::start(Session& session, const char* hook) {
  const auto* data = dynamic_cast<const EvaluationData*>(&session);
  if (!is_restored_ || (data && data->evaluation_data_are_others())) {
    best_.reset();
    waited_ = 0;
    counted_step_ = -1;
  }
  is_restored_ = false;
  direction_ = direction_to_follow(session, hook, options_.metric, options_.larger_is_better);
  if (!session.evaluates_between_steps())
    throw ConfigError(fmt::format(
        "{} follows '{}' over evaluations, but this run evaluates at its end alone: set "
        "eval_every_n_steps, eval_every_n_secs or eval_every_n_epochs (a hook of the program that "
        "evaluates says so by Hook::evaluates)",
        hook, options_.metric));
}

void MetricMonitor::add(const Metrics& metrics, int64_t step) {
  const double value = value_of(metrics, options_.metric);
  if (std::exchange(counted_step_, step) == step) return;
  const double change =
      direction_ == metrics::Direction::kLargerIsBetter ? options_.min_change : -options_.min_change;
  const bool better =
      std::isfinite(value) && (!best_ || metrics::is_better(direction_, value, *best_ + change));
  if (better) {
    best_ = value;
    best_step_ = step;
  }
  waited_ = better ? 0 : waited_ + 1;
}

std::string MetricMonitor::describe() const {
  return fmt::format("{} has {} for {} evaluations", options_.metric,
                     best_ ? fmt::format("not improved on {:g} (global step {})", *best_, best_step_)
                           : "not been a finite number",
                     waited_);
}

std::string MetricMonitor::save_state() const {
  nlohmann::json state = {{"waited", waited_}};
  if (best_) {
    state["best"] = *best_;
    state["best_step"] = best_step_;
  }
  if (counted_step_ >= 0) state["counted_step"] = counted_step_;
  return state.dump();
}

void MetricMonitor::restore_state(const std::string& state) {
  try {
    const auto parsed = parse_json(state, kInnerText, kMostTimesOfMonitor);
    const int64_t waited = count_in(parsed.at("waited"));
    // Those that there were none of before.
    const auto step = parsed.find("best_step"), counted = parsed.find("counted_step");
    best_step_ = step == parsed.end() ? 0 : count_in(*step);
    counted_step_ = counted == parsed.end() ? -1 : count_in(*counted);
    best_ = parsed.contains("best") ? std::optional(parsed.at("best").get<double>()) : std::nullopt;
    waited_ = waited;
    is_restored_ = true;
  } catch (const std::exception& error) {
    throw DataError(
        fmt::format("the checkpoint's state of the monitor of '{}' is not what a monitor saves: {}",
                    options_.metric, error.what()));
  }
}

}  // namespace mox::internal
