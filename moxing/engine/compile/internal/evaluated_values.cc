#include "moxing/engine/compile/internal/evaluated_values.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/engine/compile/internal/sample_means.h"
#include "moxing/hooks/metric_names.h"
#include "runtime/base/error.h"
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

// Two numbers of one name would be one in metrics.jsonl and results.json, and who follows it could not tell
// which. Of a metric whose parts are not known the evaluation finds out.
void require_names_apart(const EvaluatedValues& values, const metrics::NamedMetrics& metrics) {
  std::set<std::string> names;
  for (const EvaluatedValues::Mean& mean : values.means) names.insert(mean.name);
  for (const auto& [name, metric] : metrics)
    for (const std::string& part : metric.parts.value_or(std::vector<std::string>())) {
      const std::string number = part.empty() ? name : name + "/" + part;
      if (!names.insert(number).second)
        throw InvalidArgument(
            fmt::format("the metric '{}' gives a number '{}' to evaluations, which have another one of that "
                        "name, in log_info, of another metric or of another class of class_names; choose "
                        "another name",
                        name, number));
    }
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
  require_names_apart(values, model.spec.metrics);
  return values;
}

}  // namespace mox::internal
