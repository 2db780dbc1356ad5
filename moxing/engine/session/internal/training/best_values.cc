#include "moxing/engine/session/internal/training/best_values.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "moxing/json/list_elements.h"
#include "moxing/json/parse_json.h"
#include "moxing/json/whole_number.h"
#include "runtime/base/error.h"

namespace mox::internal {

namespace {

// What the values of one are taken to need at most; there are four.
constexpr size_t kMostTimesOfSummary = 12;

MetricSummary summary_in(std::string_view text) {
  const auto entry = parse_json(text, kInnerText, kMostTimesOfSummary);
  MetricSummary summary{.name = entry.at("name").get<std::string>(),
                        .last = entry.value("last", std::nan(""))};
  if (entry.contains("best")) {
    summary.best = entry.at("best").get<double>();
    if (entry.contains("best_step")) summary.best_step = count_in(entry.at("best_step"));
  }
  return summary;
}

}  // namespace

void BestValues::add(const std::string& name, double value, std::optional<metrics::Direction> direction,
                     int64_t step) {
  const auto [place, is_new] = places_.try_emplace(name, summaries_.size());
  if (is_new) summaries_.push_back({.name = name});
  MetricSummary& known = summaries_[place->second];
  known.last = value;
  if (!direction || !std::isfinite(value)) return;
  if (known.best && !metrics::is_better(*direction, value, *known.best)) return;
  known.best = value;
  known.best_step = step;
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
    summaries.reserve(for_each_element(text, [](std::string_view) {}));
    for_each_element(text, [&](std::string_view entry) { summaries.push_back(summary_in(entry)); });
    summaries_ = std::move(summaries);
    places_.clear();
    for (size_t i = 0; i < summaries_.size(); ++i) places_.try_emplace(summaries_[i].name, i);
  } catch (const std::exception& error) {
    throw DataError(fmt::format(
        "the checkpoint's state of the evaluations so far is not what a run saves: {}", error.what()));
  }
}

}  // namespace mox::internal
