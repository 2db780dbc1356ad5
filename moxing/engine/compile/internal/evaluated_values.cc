#include "moxing/engine/compile/internal/evaluated_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "moxing/engine/compile/internal/sample_means.h"
#include "runtime/graph/graph.h"

namespace mox::internal {
namespace {

// Names that no value of a program can have by chance.
std::string input_name(const std::string& metric, size_t index) {
  return fmt::format("metrics/{}/input_{}", metric, index);
}
std::string weights_name(const std::string& metric) { return fmt::format("metrics/{}/weights", metric); }

bool is_metric(const ModelSpec& spec, const std::string& name) {
  return std::ranges::any_of(spec.metrics, [&](const auto& metric) { return metric.first == name; });
}

}  // namespace

void fetch_evaluated(const ModelSpec& spec, ModelBuild& build) {
  for (const auto& [name, tensor] : spec.log_info)
    if (!is_metric(spec, name)) build.fetch(name, tensor);
  for (const auto& [name, metric] : spec.metrics) {
    for (size_t i = 0; i < metric.inputs.size(); ++i) build.fetch(input_name(name, i), metric.inputs[i]);
    if (metric.weights.defined()) build.fetch(weights_name(name), metric.weights);
  }
}

EvaluatedValues evaluated_values(const CompiledModel& model) {
  EvaluatedValues values;
  const int64_t samples = model.signature[0].shape[0];
  for (const auto& [name, tensor] : model.spec.log_info)
    if (!is_metric(model.spec, name)) {
      const bool exact = is_mean_over_samples(*model.graph, tensor, samples);
      values.means.push_back({model.fetch_index(name), exact ? name : name + " (mean of batches)"});
    }
  for (const auto& [name, metric] : model.spec.metrics) {
    EvaluatedValues::Measure measure;
    for (size_t i = 0; i < metric.inputs.size(); ++i)
      measure.inputs.push_back(model.fetch_index(input_name(name, i)));
    if (metric.weights.defined()) measure.weights = model.fetch_index(weights_name(name));
    values.measures.push_back(std::move(measure));
  }
  return values;
}

}  // namespace mox::internal
