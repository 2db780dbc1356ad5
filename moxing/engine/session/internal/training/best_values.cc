#include "moxing/engine/session/internal/training/best_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"

namespace mox::internal {

void BestValues::add(const std::string& name, double value, std::optional<metrics::Direction> direction,
                     int64_t step) {
  auto known = std::ranges::find(summaries_, name, &MetricSummary::name);
  if (known == summaries_.end()) known = summaries_.insert(known, MetricSummary{.name = name});
  known->last = value;
  if (!direction || !std::isfinite(value)) return;
  if (known->best && !metrics::is_better(*direction, value, *known->best)) return;
  known->best = value;
  known->best_step = step;
}

std::string BestValues::to_json() const {
  auto all = nlohmann::ordered_json::array();
  for (const MetricSummary& summary : summaries_) {
    nlohmann::ordered_json entry = {{"name", summary.name}};
    if (std::isfinite(summary.last)) entry["last"] = summary.last;
    if (summary.best) {
      entry["best"] = *summary.best;
      entry["best_step"] = summary.best_step;
    }
    all.push_back(std::move(entry));
  }
  return all.dump();
}

void BestValues::from_json(const std::string& text) {
  try {
    std::vector<MetricSummary> summaries;
    for (const auto& entry : parse_json(text)) {
      MetricSummary summary{.name = entry.at("name").get<std::string>(),
                            .last = entry.value("last", std::nan("")),
                            .best_step = entry.value("best_step", int64_t{0})};
      if (entry.contains("best")) summary.best = entry.at("best").get<double>();
      summaries.push_back(std::move(summary));
    }
    summaries_ = std::move(summaries);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format(
        "the checkpoint's state of the evaluations so far is not what a run saves: {}", error.what()));
  }
}

}  // namespace mox::internal
