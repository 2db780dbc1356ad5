#include "moxing/engine/compile/internal/spec_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

#include "moxing/hooks/metric_names.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

void check_is_there(const ModelSpec& spec, ModeKeys mode) {
  if (mode == ModeKeys::TRAIN && !spec.loss.defined())
    throw InvalidArgument("model_fn returned no loss; training needs ModelSpec::loss, a scalar");
  if (mode == ModeKeys::EVAL && spec.log_info.empty() && spec.metrics.empty())
    throw InvalidArgument(
        "model_fn returned an empty log_info and no metrics; an evaluation reports what is named there");
  if (mode == ModeKeys::PREDICT && spec.output_info.empty())
    throw InvalidArgument(
        "model_fn returned an empty output_info; a prediction consists of the values named there");
}

void check_name(const char* field, const std::string& name) {
  if (std::ranges::find(kReservedMetricNames, name) != std::end(kReservedMetricNames))
    throw InvalidArgument(
        fmt::format("{} '{}' has the name of another field of metrics.jsonl ({}); choose another name", field,
                    name, fmt::join(kReservedMetricNames, ", ")));
}

bool is_one_a_sample(const Tensor& tensor, int64_t samples) {
  return tensor.defined() && tensor.shape().rank() >= 1 && tensor.shape()[0] == samples;
}

void check_metric(const std::string& name, const metrics::Metric& metric, int64_t samples) {
  if (!metric.add || !metric.result || metric.inputs.empty())
    throw InvalidArgument(
        fmt::format("the metric '{}' needs inputs, add and result; one of them is empty", name));
  for (const Tensor& input : metric.inputs)
    if (!is_one_a_sample(input, samples))
      throw InvalidArgument(
          fmt::format("an input of the metric '{}' must have one row a sample, which is [{}, ...] in this "
                      "batch; it is {}",
                      name, samples, input.defined() ? to_string(input) : "an undefined tensor"));
  if (metric.weights.defined() &&
      (!is_one_a_sample(metric.weights, samples) || metric.weights.shape().elements() != samples))
    throw InvalidArgument(fmt::format(
        "the weights of the metric '{}' must be one number a sample, which is [{}] in this batch; "
        "they are {}",
        name, samples, to_string(metric.weights)));
}

}  // namespace

void check_spec(const ModelSpec& spec, ModeKeys mode, const std::vector<TensorType>& signature) {
  check_is_there(spec, mode);
  for (const auto& [name, tensor] : spec.log_info) {
    check_name("log_info", name);
    if (!tensor.defined() || tensor.shape().elements() != 1)
      throw InvalidArgument(fmt::format("log_info '{}' must be one number (use reduce_mean), it is {}", name,
                                        to_string(tensor)));
  }
  if (signature.empty() || signature[0].shape.rank() < 1) return;  // no batch, which the pipeline refuses
  const int64_t samples = signature[0].shape[0];
  std::set<std::string> names;
  for (const auto& [name, metric] : spec.metrics) {
    check_name("the metric", name);
    if (name.empty() || !names.insert(name).second)
      throw InvalidArgument(fmt::format("two metrics have the name '{}', or one has none", name));
    check_metric(name, metric, samples);
  }
  for (const auto& [name, tensor] : spec.output_info)
    if (!is_one_a_sample(tensor, samples))
      throw InvalidArgument(fmt::format(
          "output_info '{}' must have one row a sample, which is [{}, ...] in this batch; it is {}", name,
          samples, to_string(tensor)));
}

}  // namespace mox::internal
