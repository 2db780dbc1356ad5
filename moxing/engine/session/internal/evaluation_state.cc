#include "moxing/engine/session/internal/evaluation_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_set>

#include "moxing/hooks/metric_names.h"
#include "runtime/base/error.h"
#include "runtime/comm/allgather_values.h"
#include "runtime/text/printable.h"
#include "runtime/text/unsigned_nan.h"

namespace mox::internal {
namespace {

std::string number_name(const std::string& metric, const std::string& part) {
  return part.empty() ? metric : metric + "/" + printable(part);
}

std::vector<size_t> column_widths(const metrics::Table& table, std::vector<std::vector<std::string>>& cells) {
  std::vector<size_t> widths(table.columns.size() + 1);
  for (const auto& row : cells)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  return widths;
}

std::string format_cell(double number) {
  const bool whole = number == std::floor(number) && std::abs(number) < 1e15;
  return whole ? fmt::format("{:.0f}", number) : fmt::format("{:.4f}", unsigned_nan(number));
}

std::string format_table(const std::string& name, const metrics::Table& table) {
  std::vector<std::vector<std::string>> cells = {{"test " + printable(name)}};
  for (const std::string& column : table.columns) cells[0].push_back(printable(column));
  for (const auto& [title, numbers] : table.rows) {
    auto& row = cells.emplace_back(std::vector<std::string>{"  " + printable(title)});
    for (const double number : numbers) row.push_back(format_cell(number));
  }
  const auto widths = column_widths(table, cells);
  std::string text;
  for (const auto& row : cells) {
    text += fmt::format("{:<{}}", row[0], widths[0]);
    for (size_t c = 1; c < row.size(); ++c) text += fmt::format("  {:>{}}", row[c], widths[c]);
    text += '\n';
  }
  return text;
}

// Of one sample, rows, their sums and their means look alike: what batches of more of them show holds.
bool may_be(const EvaluatedValues::Mean& mean, const EvaluatedValues::Mean& expected, int64_t samples) {
  return mean.is_like(expected) || (samples == 1 && expected.name == mean.name + std::string(kMeanOfBatches));
}

}  // namespace

EvaluationState::EvaluationState(const CompiledModel& model, int lanes)
    : values_(model.evaluated),
      metrics_(model.spec.metrics),
      signature_(model.signature),
      states_(lanes, std::vector<metrics::State>(model.spec.metrics.size())) {}

void EvaluationState::expect(size_t batches) {
  expected_ = records_.size();
  records_.resize(expected_ + batches * (values_.means.size() + 1));
}

void EvaluationState::add(size_t index, int lane, CompiledModel& model, int64_t samples,
                          int64_t first_sample) {
  if (model.evaluated.means.size() != values_.means.size() ||
      model.evaluated.measures.size() != values_.measures.size())
    throw InvalidArgument(
        "model_fn returns other log_info or metrics for the last, smaller batch of an evaluation than for "
        "the others; it must build the same model each time");
  PlanInstance& instance = model.of_lane(lane);
  double* record = records_.data() + expected_ + index * (values_.means.size() + 1);
  *record++ = samples;
  for (size_t i = 0; i < values_.means.size(); ++i) {
    const EvaluatedValues::Mean& mean = model.evaluated.means[i];
    if (!may_be(mean, values_.means[i], samples))
      throw InvalidArgument(
          fmt::format("in a batch of {} samples the log_info '{}' is not the mean over samples that it is "
                      "(or is not) in one of {}: divide by the batch's own size, in[0].shape()[0], or use "
                      "reduce_mean",
                      samples, values_.means[i].name, signature_[0].shape[0]));
    *record++ = instance.fetched(mean.fetch).item();
  }
  for (size_t m = 0; m < metrics_.size(); ++m) {
    const EvaluatedValues::Measure& measure = model.evaluated.measures[m];
    std::vector<Array> inputs;
    for (const size_t fetch : measure.inputs) inputs.push_back(instance.fetched(fetch));
    try {
      metrics::add_batch(model.spec.metrics[m].second, inputs,
                         measure.weights ? instance.fetched(*measure.weights) : Array(), first_sample,
                         states_[lane][m]);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("the metric '{}': {}", metrics_[m].first, error.what()));
    }
  }
}

void EvaluationState::gather(Communicator& ranks) {
  all_records_ = allgather_values(ranks, records_);
  for (size_t m = 0; m < metrics_.size(); ++m) {
    metrics::State of_rank;
    for (const auto& lane : states_) of_rank.merge(lane[m]);
    metrics::State& all = all_states_.emplace_back();
    if (ranks.size() == 1)
      all = std::move(of_rank);
    else
      for (const std::string& bytes : ranks.allgather(of_rank.to_bytes()))
        all.merge(metrics::State::from_bytes(bytes));
  }
  states_.clear();
}

Evaluation EvaluationState::finish(const Communicator& ranks, const std::string& data) {
  Evaluation evaluation;
  add_means(ranks, data, evaluation);
  add_measures(evaluation);
  return evaluation;
}

void EvaluationState::add_means(const Communicator& ranks, const std::string& data,
                                Evaluation& evaluation) const {
  const size_t record = values_.means.size() + 1;
  const std::vector<std::vector<double>>& all = all_records_;
  std::vector<double> sums(values_.means.size());
  // Rank r has computed the batches r, r + ranks, ...
  size_t batches = 0;
  for (const std::vector<double>& of_rank : all) batches += of_rank.size() / record;
  for (size_t batch = 0; batch < batches; ++batch) {
    const std::vector<double>& of_rank = all[batch % all.size()];
    const size_t position = batch / all.size() * record;
    if (position >= of_rank.size())
      throw DataError(fmt::format(
          "rank {} (host {}) has come to the end of the data of input_fn(eval) before other ranks ({} "
          "batches in all, without its number {}); all ranks need the same data, in the same order",
          batch % all.size(), ranks.host(static_cast<int>(batch % all.size())), batches, batch));
    const std::span<const double> values = std::span(of_rank).subspan(position, record);
    evaluation.samples += static_cast<int64_t>(values[0]);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += values[i + 1] * values[0];
  }
  if (evaluation.samples == 0)
    throw DataError(fmt::format("the data of input_fn(eval) has no samples ({})", data));
  for (size_t i = 0; i < sums.size(); ++i)
    evaluation.numbers.emplace_back(values_.means[i].name, sums[i] / evaluation.samples);
}

void EvaluationState::add_measures(Evaluation& evaluation) {
  std::unordered_set<std::string> names;
  for (const auto& [name, number] : evaluation.numbers) names.insert(name);
  for (size_t m = 0; m < metrics_.size(); ++m) {
    metrics::State& all = all_states_[m];
    const auto& [name, metric] = metrics_[m];
    if (all.samples() == 0) evaluation.without_weight.push_back(name);
    metrics::Result result = metrics::result_of(metric, all);
    for (const auto& [part, number] : result.numbers) {
      const std::string number_of = number_name(name, part);
      if (!names.insert(number_of).second)
        throw InvalidArgument(fmt::format(
            "the metric '{}' has given a number '{}', which is the name of another one of this evaluation",
            name, number_of));
      evaluation.numbers.emplace_back(number_of, number);
    }
    if (!result.table.rows.empty()) evaluation.tables.emplace_back(name, std::move(result.table));
  }
}

ValueDirections::ValueDirections(const ModelSpec& spec) : metrics_(spec.metrics) {
  for (const auto& [name, direction] : spec.directions) said_.try_emplace(name, direction);
  for (const auto& [name, value] : spec.log_info) is_loss_.try_emplace(name, value == spec.loss);
}

std::optional<metrics::Direction> ValueDirections::of(std::string_view name) const {
  if (name.ends_with(kMeanOfBatches)) name.remove_suffix(kMeanOfBatches.size());
  if (const auto said = said_.find(name); said != said_.end()) return said->second;
  // Names of metrics and of values may have slashes, too: a part is one of the longest name.
  const metrics::Metric* whole = nullptr;
  size_t longest = 0;
  for (const auto& [known, metric] : metrics_) {
    if (known == name) return metric.direction;
    const auto is_name = [&, &of = known](const std::string& part) { return number_name(of, part) == name; };
    if (known.size() < longest || !name.starts_with(known + "/")) continue;
    if (metric.parts && std::ranges::none_of(*metric.parts, is_name)) continue;
    whole = &metric;
    longest = known.size();
  }
  const auto is_loss = is_loss_.find(name);
  if (whole && (whole->parts || is_loss == is_loss_.end())) return whole->direction;
  if (is_loss != is_loss_.end() && is_loss->second) return metrics::Direction::kSmallerIsBetter;
  return metrics::direction_of_name(name);
}

void require_directed_values(const ModelSpec& spec, const ModelSpec& other) {
  std::vector<std::string> names;
  for (const ModelSpec* of : {&spec, &other}) {
    for (const auto& [name, value] : of->log_info) names.push_back(name);
    for (const auto& [name, metric] : of->metrics) names.push_back(name);
  }
  for (const auto& [directed, direction] : spec.directions)
    if (std::ranges::none_of(names, [&, &wanted = directed](const std::string& name) {
          return wanted == name || wanted.starts_with(name + "/");
        }))
      throw InvalidArgument(fmt::format(
          "ModelSpec::directions has '{}', which is the name neither of a value of log_info nor of a metric; "
          "there are {}",
          directed, fmt::join(names, ", ")));
}

std::string evaluated_name(const CompiledModel& model, std::string_view what_says, std::string_view name) {
  const std::string of_batches = std::string(name) + std::string(kMeanOfBatches);
  std::vector<std::string> names;
  for (const EvaluatedValues::Mean& mean : model.evaluated.means) {
    if (mean.name == name || mean.name == of_batches) return mean.name;
    names.push_back(mean.name);
  }
  for (const auto& [known, metric] : model.spec.metrics) {
    if (!metric.parts) {
      // "f1", or a part of it: "f1/dark"
      if (name == known || name.starts_with(known + "/")) return std::string(name);
      names.push_back(known);
      continue;
    }
    for (const std::string& part : *metric.parts) {
      names.push_back(number_name(known, part));
      if (names.back() == name) return names.back();
    }
  }
  throw ConfigError(fmt::format("{} '{}', which no evaluation gives; model_fn's log_info and metrics are {}",
                                what_says, name, fmt::join(names, ", ")));
}

std::string format_test_lines(const Evaluation& evaluation) {
  std::string text;
  for (const auto& [name, value] : evaluation.numbers)
    text += fmt::format("test {}: {:.4f}\n", printable(name), unsigned_nan(value));
  for (const auto& [name, table] : evaluation.tables) text += format_table(name, table);
  return text;
}

}  // namespace mox::internal
