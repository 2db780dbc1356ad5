#include "moxing/engine/compile/internal/evaluated_values.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/engine/compile/internal/sample_means.h"
#include "moxing/hooks/metric_names.h"
#include "runtime/graph/graph.h"

namespace mox::internal {
namespace {

// Names that no value of a program can have by chance.
std::string input_name(const std::string& metric, size_t index) {
  return fmt::format("metrics/{}/input_{}", metric, index);
}
std::string weights_name(const std::string& metric) { return fmt::format("metrics/{}/weights", metric); }

// The values of log_info that no metric replaces.
std::vector<std::pair<std::string, Tensor>> plain_values(const ModelSpec& spec) {
  std::set<std::string_view> metrics;
  for (const auto& [name, metric] : spec.metrics) metrics.insert(name);
  std::vector<std::pair<std::string, Tensor>> values;
  for (const auto& [name, tensor] : spec.log_info)
    if (!metrics.contains(name)) values.emplace_back(name, tensor);
  return values;
}

}  // namespace

void fetch_evaluated(const ModelSpec& spec, ModelBuild& build) {
  for (const auto& [name, tensor] : plain_values(spec)) build.fetch(name, tensor);
  for (const auto& [name, metric] : spec.metrics) {
    for (size_t i = 0; i < metric.inputs.size(); ++i) build.fetch(input_name(name, i), metric.inputs[i]);
    if (metric.weights.defined()) build.fetch(weights_name(name), metric.weights);
  }
}

EvaluatedValues evaluated_values(const CompiledModel& model) {
  EvaluatedValues values;
  const int64_t samples = model.signature[0].shape[0];
  const auto plain = plain_values(model.spec);
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : plain) tensors.push_back(tensor);
  const auto exact = means_over_samples(*model.graph, tensors, samples);
  for (size_t i = 0; i < plain.size(); ++i) {
    const std::string& name = plain[i].first;
    values.means.push_back({model.fetch_index(name), exact[i] ? name : name + std::string(kMeanOfBatches),
                            exact[i].value_or(0)});
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
