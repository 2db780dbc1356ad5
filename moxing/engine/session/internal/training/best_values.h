// The last and the best of each of several numbers that are measured again and again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "moxing/console/console.h"
#include "moxing/hooks/evaluation_data.h"
#include "moxing/hooks/hook.h"

namespace mox::internal {

class BestValues {
 public:
  // NaN and infinities are never the best.
  void add(const std::string& name, double value, std::optional<metrics::Direction> direction, int64_t step);
  // In the order of their first mention.
  const std::vector<MetricSummary>& summaries() const { return summaries_; }

  std::string to_json() const;
  void from_json(const std::string& text);  // throws DataError

 private:
  std::vector<MetricSummary> summaries_;
  std::unordered_map<std::string, size_t> places_;  // in these, by name
};

// Those of all evaluations of a run, earlier starts included that evaluated the same data. Of one start.
class EvaluationSummaryHook : public Hook {
 public:
  std::string name() const override { return "evaluation_summary"; }
  void after_create_session(Session& session) override { start_once(session); }
  void after_evaluation(Session& session, const Metrics& metrics) override {
    start_once(session);  // a hook before this one may have evaluated in its after_create_session
    for (const auto& [name, value] : metrics)
      values_.add(name, value, session.direction(name), session.global_step());
  }
  std::string save_state() const override { return values_.summaries().empty() ? "" : values_.to_json(); }
  void restore_state(const std::string& state) override { values_.from_json(state); }
  const BestValues& values() const { return values_; }

 private:
  void start_once(Session& session) {
    if (std::exchange(is_started_, true)) return;
    const auto* data = dynamic_cast<const EvaluationData*>(&session);
    if (data && data->evaluation_data_are_others()) values_ = {};
  }

  BestValues values_;
  bool is_started_ = false;
};

}  // namespace mox::internal
