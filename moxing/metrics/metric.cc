#include "moxing/metrics/metric.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/text/unsigned_nan.h"

namespace mox::metrics {
namespace {

template <typename T>
void widen(const Array& array, std::vector<double>& numbers) {
  for (const T value : array.values<T>()) numbers.push_back(static_cast<double>(value));
}

std::vector<double> as_doubles(const Array& array) {
  std::vector<double> numbers;
  numbers.reserve(array.elements());
  switch (array.dtype()) {
    case DType::kFloat32:
      widen<float>(array, numbers);
      break;
    case DType::kBFloat16:
      for (const BFloat16 value : array.values<BFloat16>()) numbers.push_back(static_cast<float>(value));
      break;
    case DType::kInt32:
      widen<int32_t>(array, numbers);
      break;
    case DType::kInt64:
      widen<int64_t>(array, numbers);
      break;
    case DType::kUInt8:
      widen<uint8_t>(array, numbers);
      break;
    case DType::kBool:
      widen<bool>(array, numbers);
      break;
  }
  return numbers;
}

int64_t rows_of(const Array& array) {
  if (array.shape().rank() < 1)
    throw InvalidArgument("an input of a metric has one row a sample; it is a single number");
  return array.shape()[0];
}

}  // namespace

void add_batch(const Metric& metric, std::span<const Array> inputs, const Array& weights,
               int64_t first_sample, State& state) {
  if (inputs.empty()) throw InvalidArgument("a metric without inputs sees no samples");
  const int64_t samples = rows_of(inputs[0]);
  std::vector<std::vector<double>> numbers;
  for (const Array& input : inputs) {
    if (rows_of(input) != samples)
      throw InvalidArgument(
          fmt::format("the inputs of a metric have one row a sample each; one has {} rows, another {}",
                      samples, rows_of(input)));
    numbers.push_back(as_doubles(input));
  }
  std::vector<double> weight_of;
  if (weights.defined()) {
    weight_of = as_doubles(weights);
    if (std::ssize(weight_of) != samples)
      throw InvalidArgument(fmt::format(
          "the weights of a metric are one number a sample; there are {} for {}", weight_of.size(), samples));
  }
  Sample sample{.values = std::vector<std::span<const double>>(inputs.size())};
  for (int64_t row = 0; row < samples; ++row) {
    const size_t at = row;
    if (weights.defined()) {
      sample.weight = weight_of[at];
      if (!(sample.weight >= 0) || !std::isfinite(sample.weight))
        throw InvalidArgument(fmt::format("sample {}: its weight is {}; weights are finite and >= 0",
                                          first_sample + row, unsigned_nan(sample.weight)));
      if (sample.weight == 0) continue;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t length = numbers[i].size() / samples;
      sample.values[i] = std::span<const double>(numbers[i]).subspan(at * length, length);
    }
    try {
      if (metric.counts && !metric.counts(sample)) continue;
      metric.add(sample, state);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("sample {}: {}", first_sample + row, error.what()));
    }
    state.count_sample();
  }
}

Result result_of(const Metric& metric, State& state) {
  state.sort_kept();
  return metric.result(state);
}

Result evaluate(const Metric& metric, std::span<const Array> inputs, const Array& weights) {
  State state;
  add_batch(metric, inputs, weights, 0, state);
  return result_of(metric, state);
}

}  // namespace mox::metrics
